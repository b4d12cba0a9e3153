"""`python -m cycles` is `crawl`."""

from cycles.cli import main

if __name__ == "__main__":
    main()
