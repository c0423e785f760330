"""Asks the double of Azure with Microsoft's SDK for Python.

azure-sdk.py CONNECT CA CASES: CONNECT maps "host:port" to "address:port", CA is a file, and CASES is a list of
{"credential": {...}, "vault": URL, "name": NAME, "version": VERSION or null}. All but CA is JSON. Prints a list of
{"value", "version"} or {"error", "message"}.
"""

import json
import logging
import sys

import urllib3.util.connection as connection
from azure.core.exceptions import AzureError
from azure.identity import ClientAssertionCredential, ClientSecretCredential, ManagedIdentityCredential
from azure.keyvault.secrets import SecretClient

connect, ca, cases = json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
create_connection = connection.create_connection
options = {"connection_verify": ca, "retry_total": 0}


def create_mapped(address, *args, **kwargs):
    """Names stay as they are for TLS and HTTP; only the connection goes elsewhere, and never to the real one."""
    host, port = connect["%s:%d" % address].rsplit(":", 1)
    return create_connection((host, int(port)), *args, **kwargs)


def credential_of(given):
    if "client_secret" in given:
        return ClientSecretCredential(**given, **options)
    if "assertion" in given:
        ids = {name: given[name] for name in ("tenant_id", "client_id")}
        return ClientAssertionCredential(**ids, func=lambda: given["assertion"], **options)
    return ManagedIdentityCredential(**given, **options)


def ask(case):
    try:
        client = SecretClient(case["vault"], credential_of(case["credential"]), **options)
        secret = client.get_secret(case["name"], case["version"])
        return {"value": secret.value, "version": secret.properties.version}
    except AzureError as error:
        return {"error": type(error).__name__, "message": error.message}


connection.create_connection = create_mapped
logging.disable()
print(json.dumps([ask(case) for case in cases]))
