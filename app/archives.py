"""Zip files that come from elsewhere: what reading one can raise besides `OSError`."""

from __future__ import annotations

import zipfile
import zlib
from lzma import LZMAError

# A damaged one; one that is cut off; one that is encrypted or packed in a way that Python does not know.
ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, NotImplementedError, RuntimeError)
