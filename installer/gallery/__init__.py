"""Pictures of every window in every state, to be looked at: scenes that a scripted engine plays.

`python -m installer.screenshots --all --out FOLDER` makes them. A scene is a generator that opens something
in a `Studio` and yields what to take a picture of; a new window goes into `SCENES` of the file it is for.
"""
