"""Authenticated encryption of what is kept in the database (Fernet: AES-128-CBC with HMAC-SHA256).

The first key encrypts, all of them decrypt: put a new key in front, save the secrets again, then drop
the old one.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class BadKey(ValueError):
    """A key is not 32 bytes in URL-safe base64."""


class CannotDecrypt(Exception):
    """None of the keys opens this value: it was sealed with another key, or changed."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} cannot be decrypted with any of the keys in ENCRYPTION_KEY. Add the key that "
            "encrypted it to the end of the list, or enter the secret again."
        )


class Sealer:
    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise BadKey("ENCRYPTION_KEY is empty")
        self._fernet = MultiFernet([self._key(number, key) for number, key in enumerate(keys, 1)])

    @staticmethod
    def _key(number: int, key: str) -> Fernet:
        try:
            return Fernet(key)
        except ValueError:
            raise BadKey(
                f"key number {number} of ENCRYPTION_KEY is not 32 bytes in URL-safe base64; make one with: "
                'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
            ) from None

    def seal(self, secret: str) -> str:
        """An ASCII token; the empty string stays empty."""
        return self._fernet.encrypt(secret.encode()).decode() if secret else ""

    def unseal(self, token: str, what: str) -> str:
        """The secret again. `what` names the object in the error (`CannotDecrypt`)."""
        if not token:
            return ""
        try:
            return self._fernet.decrypt(token.encode()).decode()
        except InvalidToken:
            raise CannotDecrypt(what) from None

    def rotate(self, token: str, what: str) -> str:
        """The same secret sealed with the first key."""
        return self.seal(self.unseal(token, what))
