"""``python -m fillrank``: the command ``fillrank``."""

from fillrank.cli.start import main

if __name__ == "__main__":
    main()
