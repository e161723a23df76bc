"""`python -m benchmarks.evaluation NAME --model MODEL --data DIR`: run one experiment, or `all`."""

import sys

from benchmarks.evaluation.command import main

sys.exit(main())
