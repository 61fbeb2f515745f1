"""``python -m unrolled`` is the command line."""

from unrolled.cli.main import main

main()
