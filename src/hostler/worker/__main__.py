from hostler.worker.main import main

raise SystemExit(main())
