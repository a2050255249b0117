"""Checkpoints of the metadata log: the newest whole one, folded into an image of its own.

Used by `follower`. A checkpoint is committed as it stands. It always starts a new image and is never folded into
one that is there.
"""

from __future__ import annotations

import os

from cluster_model.errors import InputError, Problem
from cluster_model.metadata.batches import TornError, decoded, read_batches
from cluster_model.metadata.directory import Checkpoint
from cluster_model.metadata.fold import RecordFold
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.schemas import SNAPSHOT_FOOTER
from cluster_model.metadata.wire import MalformedError


def load_checkpoint(checkpoint: Checkpoint, now_ms: int) -> RecordFold:
    """A new image of everything before the checkpoint's end offset.

    Raises
    ------
    InputError
        The file cannot be read, is not whole, or has a record that this release cannot fold.
    """
    where = str(checkpoint.path)
    try:
        file = os.open(checkpoint.path, os.O_RDONLY)
    except PermissionError:
        message = (
            "cannot be read: Kafka makes checkpoints readable for its own user only (mode 0400); run as that user, "
            "or follow the cluster through the admin interface (without --kraft-log)"
        )
        raise InputError(where, [Problem("", message)]) from None
    except OSError as error:
        raise InputError(where, [Problem("", f"cannot be read: {error.strerror}")]) from None
    fold = RecordFold(MetadataImage())
    whole, end = False, 0
    try:
        for data, placed in read_batches(file, 0, 0):
            fold.take(data, placed, where, now_ms)
            at, last = placed[-1]
            whole = last.control and any(r.key == SNAPSHOT_FOOTER for _, r in decoded(data, at, last))
            end = last.position + last.size
    except TornError:
        if whole and end == os.fstat(file).st_size:
            return fold
        raise InputError(where, [Problem(f"byte {end}", "expected the footer of a whole checkpoint; the file ends")]) from None
    except MalformedError as error:
        raise InputError(where, [Problem(f"byte {end}", str(error))]) from None
    finally:
        os.close(file)
    raise AssertionError("unreachable")
