"""``python -m fedlasso`` is the ``fedlasso`` command."""

import sys

from fedlasso.cli import main

if __name__ == "__main__":
    sys.exit(main())
