"""Published tables next to our measurements: `python -m papers --help` explains the options."""

import sys

from papers.command import main

sys.exit(main())
