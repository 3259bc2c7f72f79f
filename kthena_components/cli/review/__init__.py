"""The command `review`: what a branch changes, checked by its base, as a comment."""
