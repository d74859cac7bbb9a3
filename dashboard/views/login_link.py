"""The page behind a one-time link: it sets a password and logs in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView
from django.urls import reverse, reverse_lazy
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode


def link_for(user: User) -> str:
    """Valid once (it dies with the password it replaces) and for PASSWORD_RESET_TIMEOUT seconds."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    return settings.BASE_URL + reverse("login-link", args=[uid, token])


class LoginLink(PasswordResetConfirmView):
    template_name = "login_link.html"
    post_reset_login = True
    post_reset_login_backend = "django.contrib.auth.backends.ModelBackend"
    success_url = reverse_lazy("admin:index")

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        form.fields["new_password1"].widget.attrs["autofocus"] = True
        return form

    def get_user(self, uidb64: str) -> Any:
        user: Any = super().get_user(uidb64)
        return user if user is not None and user.is_active else None
