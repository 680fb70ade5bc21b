"""Control laws from the model of a robot, each as a Controller for `simulate`."""
