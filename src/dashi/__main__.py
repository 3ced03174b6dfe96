import sys

try:
    from dashi.cli.main import main

    main()
except KeyboardInterrupt:  # before there was anything to stop
    sys.stderr.write("stopped\n")
    sys.exit(130)
