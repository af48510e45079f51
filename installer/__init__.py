"""What turns a checkout into something to start: the set-up of `make run` and `make test`, and packages."""
