"""Logins that need more than the properties file: a token, AWS credentials, a Kerberos ticket.

Asked by `trimtab.capture.connection` before the first connection. The Python client asks again at each connection; where there is
nothing, it tries on until its time is up, and does not say what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cluster_model.errors import ExternalError
from trimtab.capture.oauth import Tokens


def check_login(options: Mapping[str, object]) -> None:
    """Return if this machine has what the login of these client options needs.

    Raises
    ------
    ExternalError
        It does not; the message says what to do and holds no secret.
    """
    tokens = options.get("sasl_oauth_token_provider")
    if isinstance(tokens, Tokens):
        tokens.token()
    match options.get("sasl_mechanism"):
        case "AWS_MSK_IAM":
            _check_aws()
        case "GSSAPI":
            _check_ticket()


def _check_aws() -> None:
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import Session

    remedy = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role"
    try:
        session = Session()
        credentials = session.get_credentials()
        if credentials is None:
            raise ExternalError(f"AWS_MSK_IAM: no AWS credentials on this machine; {remedy}", retriable=False)
        credentials.get_frozen_credentials()
        region = session.get_config_variable("region")
    except (BotoCoreError, ClientError) as error:  # the second: what AWS answers, to a role that may not be assumed say
        raise ExternalError(f"AWS_MSK_IAM: no AWS credentials ({error}); {remedy}", retriable=True) from None
    if not region:
        raise ExternalError("AWS_MSK_IAM: no AWS region; set AWS_DEFAULT_REGION to the region of the cluster", retriable=False)


def _check_ticket() -> None:
    import gssapi

    try:
        _ = gssapi.Credentials(usage="initiate").lifetime
    except gssapi.exceptions.GSSError as error:
        said = re.sub(r"^.*Minor \(\d+\): ", "", str(error), flags=re.DOTALL)
        remedy = "run kinit PRINCIPAL, or kinit -kt KEYTAB PRINCIPAL"
        raise ExternalError(f"GSSAPI: no valid Kerberos ticket on this machine ({said}); {remedy}", retriable=False) from None
