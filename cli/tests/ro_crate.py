"""Validates the RO-Crate in a folder: python ro_crate.py FOLDER. Packages: results/tests/requirements.txt.

The validator loads the words of the crate from w3id.org. Here they come from the package rocrate, which has them of a later version,
with the same meaning for every word of an artifact: a test needs no network.
"""

import io
import pathlib
import sys

import requests
import rocrate
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from urllib3 import HTTPResponse

CONTEXT = pathlib.Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld"


def send(_adapter, request, **_options):
    """Answers a request for the words; there are no others."""
    if not request.url.startswith("https://w3id.org/ro/crate/"):
        raise requests.ConnectionError(f"no network in this test: {request.url}")
    headers = {"Content-Type": "application/ld+json"}
    raw = HTTPResponse(io.BytesIO(CONTEXT.read_bytes()), headers=headers, status=200, preload_content=False)
    return requests.adapters.HTTPAdapter.build_response(_adapter, request, raw)


requests.adapters.HTTPAdapter.send = send
settings = ValidationSettings(
    rocrate_uri=sys.argv[1],
    profile_identifier="ro-crate-1.1",
    requirement_severity=Severity.RECOMMENDED,
    no_cache=True,
)
issues = services.validate(settings).get_issues()
for issue in issues:
    print(f"{issue.severity.name}: {issue.message}")
required = [issue for issue in issues if issue.severity is Severity.REQUIRED]
print(f"{len(required)} of {len(issues)} issues are about what is required")
sys.exit(1 if required else 0)
