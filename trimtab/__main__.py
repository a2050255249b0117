"""``python -m trimtab``, the same as the command `trimtab`."""

from trimtab.cli import run

if __name__ == "__main__":
    run()
