"""Which permission is missing where a cluster refuses something, in the words of Kafka's ACLs.

Used by all that talks to Kafka; docs/security.md has what each command needs.
"""

from __future__ import annotations

import kafka.errors as kafka_errors

ALL = "*"


def is_refusal(error: BaseException) -> bool:
    """Whether a cluster refuses for want of a permission; the client wraps some of these in an error of no kind."""
    return isinstance(error, kafka_errors.AuthorizationError) or "AuthorizationFailedError" in str(error)


def missing(error: BaseException | type, operation: str, name: str = ALL) -> str:
    """What to do about an authorization error, or its class: the operation, on what, and the command that allows it.

    Parameters
    ----------
    operation
        As Kafka's command takes it: ``Describe``, ``AlterConfigs``.
    name
        Of the topic, group or transactional id; all of them by default.
    """
    kind = error if isinstance(error, type) else type(error)
    if "TransactionalIdAuthorizationFailed" in str(error):
        kind = kafka_errors.TransactionalIdAuthorizationFailedError
    if issubclass(kind, kafka_errors.GroupAuthorizationFailedError):
        what, option = "consumer groups", "--group"
    elif issubclass(kind, kafka_errors.TransactionalIdAuthorizationFailedError):
        what, option = "transactional ids", "--transactional-id"
    elif issubclass(kind, kafka_errors.TopicAuthorizationFailedError) or operation == "Write":
        # An idempotent producer may write to any topic at all, or is refused by the cluster.
        what, option = "topics", "--topic"
    else:
        return f"the principal needs {operation} on the cluster ({_command(operation)} --cluster)"
    on = f"all {what}" if name == ALL else f"{what.removesuffix('s')} {name}"
    return f"the principal needs {operation} on {on} ({_command(operation)} {option} {repr(ALL) if name == ALL else name})"


def _command(operation: str) -> str:
    return f"kafka-acls.sh --add --allow-principal User:… --operation {operation}"
