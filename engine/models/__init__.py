"""One file per concern of the models that can run. Importing this package is torch-free."""
