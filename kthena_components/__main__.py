"""`python -m kthena_components` is the command `kthena-components`."""

import sys

from kthena_components.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
