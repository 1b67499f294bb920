"""`python -m papers` is `tertium reproduce`."""

import sys

from tertium.cli import main

sys.exit(main(["reproduce", *sys.argv[1:]]))
