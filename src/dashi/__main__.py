from dashi.cli.main import main

main()
