"""Control laws that use the model of a robot, as Controllers for `simulate`."""
