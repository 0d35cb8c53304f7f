"""What is kept on disk: archives of measures and states, checkpoints, and where a result comes from."""
