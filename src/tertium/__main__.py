"""`python -m tertium` is the command line."""

import sys

from tertium.cli import main

sys.exit(main())
