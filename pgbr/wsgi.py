"""The WSGI application that gunicorn serves (gunicorn.conf.py starts the embedded database before)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgbr.settings")

application = get_wsgi_application()
