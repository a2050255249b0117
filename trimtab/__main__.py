"""The command `trimtab`, also as ``python -m trimtab``: handles Ctrl-C from the start, so it imports nothing outside of `run`."""

INTERRUPTED = 130


def run() -> None:
    """Run the command line of this process and end it."""
    try:
        import sys

        from trimtab.streams import prepare

        prepare()
        from trimtab.cli import main

        code = main()
    except KeyboardInterrupt:
        _interrupted(told=False)
    if code == INTERRUPTED:
        _interrupted(told=True)
    sys.exit(code)


def _interrupted(*, told: bool) -> None:
    """End at once. On the usual way out Python may end by the signal after all, once libraries have seen the interrupt."""
    import os
    import signal
    import sys

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from trimtab.story import asked_for, log, tell
    from trimtab.streams import flush

    if not told:
        tell(asked_for(sys.argv[1:]))
        log.error("interrupted")
    flush()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    run()
