"""Where the packaged `fiddler` command begins."""

import sys

from engine.cli import main

if __name__ == "__main__":
    sys.exit(main())
