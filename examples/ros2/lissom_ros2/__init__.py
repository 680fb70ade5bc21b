"""A robot of lissom in ROS 2: `core` makes plain data, `node` sends them as messages."""
