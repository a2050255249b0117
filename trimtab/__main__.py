"""The command `trimtab`, also as ``python -m trimtab``: handles Ctrl-C from the start, so it imports nothing outside of `run`.

SIGTERM and SIGHUP end it the same way, so that nothing half written is left behind. Commands that run until they are told to end put
handlers of their own in place (`trimtab.signals`).
"""

INTERRUPTED = 130  # 128 and the number of the signal, as shells count


def run() -> None:
    """Run the command line of this process and end it."""
    ended_by: list[int] = []  # signals other than Ctrl-C that end this process
    try:
        import signal
        import sys

        def end(number: int, frame: object) -> None:
            if not ended_by:  # a second one changes nothing: the first is being obeyed
                ended_by.append(number)
                raise KeyboardInterrupt

        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # not every system has both
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup has it ignored
                signal.signal(number, end)
        from trimtab.signals import ending_at_once

        with ending_at_once():
            from trimtab.streams import prepare

            prepare()
            from trimtab.cli import main
        code = main()
    except KeyboardInterrupt:
        from trimtab.signals import end_now

        end_now(128 + ended_by[0] if ended_by else INTERRUPTED, told=False)
    if code == INTERRUPTED:
        from trimtab.signals import end_now

        end_now(128 + ended_by[0] if ended_by else INTERRUPTED, told=True)
    sys.exit(code)


if __name__ == "__main__":
    run()
