from hostler.cli.main import main

main()
