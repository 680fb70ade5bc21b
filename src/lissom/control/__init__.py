"""Control laws made from the model of a robot, each as the Controller that `simulate` takes."""
