"""Ed25519 signatures under proofs (RFC 8032), by the library `cryptography` (extra "signing")."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .errors import InvalidInput, UnsupportedHere

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

ALGORITHM = "Ed25519"


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, and the raw public key it was made for (32 bytes)."""

    public: bytes
    value: bytes

    @property
    def fingerprint(self) -> str:
        """A short name of the key: the first 16 bytes of its SHA-256, in hex."""
        return hashlib.sha256(self.public).hexdigest()[:32]

    def to_json(self) -> dict[str, str]:
        """Return it as plain JSON values."""
        return {
            "algorithm": ALGORITHM,
            "public_key": base64.b64encode(self.public).decode(),
            "value": base64.b64encode(self.value).decode(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_json` gave. Raises KeyError, TypeError, ValueError for anything else."""
        if set(data) != {"algorithm", "public_key", "value"} or data["algorithm"] != ALGORITHM:
            raise ValueError(ALGORITHM)
        public, value = (
            base64.b64decode(data[name], validate=True) for name in ("public_key", "value")
        )
        if len(public) != 32 or len(value) != 64:
            raise ValueError(ALGORITHM)
        return cls(public, value)


def new_key() -> tuple[bytes, bytes]:
    """Return a new private key and its public key, both in PEM form (PKCS 8 and SPKI).

    Raises UnsupportedHere without the extra "signing".
    """
    keys, forms = _library()
    private = keys.Ed25519PrivateKey.generate()
    secret = private.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )
    return secret, private.public_key().public_bytes(
        forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo
    )


def write_key(path: Path) -> Path:
    """Make a key: the private one at `path`, for its owner alone, the public one beside it.

    Returns the path of the public one. Raises InvalidInput where a file is there already.
    """
    public = path.with_suffix(path.suffix + ".pub")
    secret, open_part = new_key()
    if public.exists():
        raise InvalidInput("There is a public key of that name already.")
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput("There is a key of that name already.") from None
    with os.fdopen(number, "wb") as file:
        file.write(secret)
    public.write_bytes(open_part)
    return public


def signature_of(key: bytes, message: bytes) -> Signature:
    """Sign a message with a private key in PEM form; InvalidInput for another kind of key."""
    private = _private(key)
    return Signature(private.public_key().public_bytes_raw(), private.sign(message))


def check_signature(
    signature: Signature, message: bytes, public_key: bytes | None
) -> tuple[bool, list[str]]:
    """Return whether the signature is by the public key given (PEM), and what is wrong with it."""
    from cryptography.exceptions import InvalidSignature

    keys, _ = _library()
    expected = None if public_key is None else _public(public_key).public_bytes_raw()
    problems = []
    try:
        keys.Ed25519PublicKey.from_public_bytes(signature.public).verify(signature.value, message)
    except InvalidSignature:
        problems.append("the signature is not of this document")
    if expected is not None and expected != signature.public:
        problems.append("signed by another key than the one given")
    return expected is not None and not problems, problems


def _private(key: bytes) -> Ed25519PrivateKey:
    keys, forms = _library()
    try:
        found: Ed25519PrivateKey | None = forms.load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        found = None
    if found is None or not isinstance(found, keys.Ed25519PrivateKey):
        raise InvalidInput("The key is no Ed25519 private key in PEM form without a password.")
    return found


def _public(key: bytes) -> Ed25519PublicKey:
    keys, forms = _library()
    try:
        found: Ed25519PublicKey | None = forms.load_pem_public_key(key)
    except (ValueError, TypeError):
        found = None
    if found is None or not isinstance(found, keys.Ed25519PublicKey):
        raise InvalidInput("The key is no Ed25519 public key in PEM form.")
    return found


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise UnsupportedHere(
            "Signatures need the library cryptography.",
            remedy='Install it: pip install "dellm[signing]".',
        ) from None
    return ed25519, serialization
