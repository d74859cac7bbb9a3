"""Django settings. Importing this module reads the environment and starts nothing."""

from __future__ import annotations

from typing import Any

from pgbr import embedded, env, keys
from pgbr.logs import LOGGING as LOGGING

BASE_DIR = env.CHECKOUT
PGBR_HOME = env.home()
DEBUG = env.boolean("DEBUG")


# The database: given, or embedded ---------------------------------------------------------------

_database_url = env.database_url()
EMBEDDED_DATABASE = _database_url is None


def _database() -> dict[str, Any]:
    if _database_url is not None:
        return env.database(_database_url)
    running = embedded.connection(PGBR_HOME)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": running.dbname if running else "pgbr",
        "USER": running.user if running else "pgbr",
        "PASSWORD": running.password if running else "",
        "HOST": str(running.host) if running else "the-embedded-database-is-not-running.invalid",
        "PORT": str(running.port) if running else "",
    }


DATABASES = {"default": _database()}
DATABASES["default"]["OPTIONS"] = {
    # A half-open connection is noticed within a minute; a pooler in transaction mode is no trouble.
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "pgbr",
    "prepare_threshold": None,
} | DATABASES["default"].get("OPTIONS", {})
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
DATABASES["default"]["CONN_MAX_AGE"] = 60
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

# LISTEN needs a session of its own, which a pooler in transaction mode does not give.
DATABASE_DIRECT_URL = env.direct_database_url()

# Empty ones are reported by pgbr.checks, with the way to make them.
SECRET_KEY = env.secret("SECRET_KEY")
ENCRYPTION_KEYS = [key.strip() for key in env.secret("ENCRYPTION_KEY").split(",") if key.strip()]
if EMBEDDED_DATABASE:
    SECRET_KEY = SECRET_KEY or keys.made_once(PGBR_HOME, "secret")
    ENCRYPTION_KEYS = ENCRYPTION_KEYS or [keys.made_once(PGBR_HOME, "encryption")]


# The web ------------------------------------------------------------------------------------------

BASE_URL = env.url("BASE_URL", "http://127.0.0.1:8000")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS") or ["127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
METRICS_TOKEN = env.secret("METRICS_TOKEN")
UPLOAD_MAX_BYTES = env.integer("UPLOAD_MAX_BYTES", 100 * 2**30, minimum=1)
SSE_MAX_CLIENTS = env.integer("SSE_MAX_CLIENTS", 200, minimum=0)
SSE_PING_SECONDS = env.seconds("SSE_PING_SECONDS", 25, minimum=0.1)

SECURE_COOKIES = BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "pgbr_session", "pgbr_csrf"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

INSTALLED_APPS = [
    "dashboard.apps.DashboardConfig",
    "dashboard.apps.PgbrAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "jobs.apps.JobsConfig",
    "schedules.apps.SchedulesConfig",
]
MIDDLEWARE = [
    "dashboard.middleware.ClientAddress",
    "dashboard.middleware.ContentSecurityPolicy",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

ROOT_URLCONF = "pgbr.urls"
WSGI_APPLICATION = "pgbr.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"
# Served from where the packages keep them: there is no collectstatic that could be forgotten.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
LOGIN_URL, LOGIN_REDIRECT_URL = "admin:login", "admin:index"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


# Storages -------------------------------------------------------------------------------------------

BACKUP_FOLDER = PGBR_HOME / "backups"
SCRATCH_FOLDER = PGBR_HOME / "scratch"
PGTOOLS_FOLDER = PGBR_HOME / "pgtools"
PGBR_PG_BIN = env.words("PGBR_PG_BIN")

ENVIRONMENT_STORAGE = env.storage()
STORAGE_RETRY_SECONDS = env.seconds("STORAGE_RETRY_SECONDS", 900)


# The worker -----------------------------------------------------------------------------------------

WORKER_CONCURRENCY = env.integer("WORKER_CONCURRENCY", 5, minimum=1, maximum=200)
SHUTDOWN_GRACE_SECONDS = env.seconds("SHUTDOWN_GRACE_SECONDS", 30)
HEARTBEAT_SECONDS = env.seconds("HEARTBEAT_SECONDS", 15, minimum=0.1)
STALE_SECONDS = env.seconds("STALE_SECONDS", 90, minimum=0.5)
POLL_SECONDS = env.seconds("POLL_SECONDS", 5, minimum=0.1)
TICK_SECONDS = env.seconds("TICK_SECONDS", 30, minimum=0.1)
STALL_LIMIT = env.integer("STALL_LIMIT", 2, minimum=1, maximum=100)
PURGE_DAYS = env.integer("PURGE_DAYS", 7, minimum=1)
TRASH_DAYS = env.integer("TRASH_DAYS", 7, minimum=0, maximum=3650)

# queue -> the dotted path of its processor.
PROCESSORS = {
    "backup": "jobs.processors.backup.BackupProcessor",
    "restore": "jobs.processors.restore.RestoreProcessor",
    "migration": "jobs.processors.migration.MigrationProcessor",
}
# (dotted path of a function without arguments, its pace, seconds between two runs): one thread a pace
UPKEEP_DUTIES = [
    ("jobs.queue.reap.reap_stale", "fast", HEARTBEAT_SECONDS),
    ("schedules.tick.tick", "fast", TICK_SECONDS),
    ("jobs.stores.follow_settings", "slow", 3600.0),
    ("jobs.queue.purge.purge_finished", "slow", 3600.0),
    ("jobs.processors.copies.sweep_unfinished", "slow", 60.0),
    ("jobs.restoring.keeping.drop_expired", "slow", 3600.0),
    ("jobs.restoring.settling.settle_unsettled", "slow", 300.0),
    ("schedules.copies.plan_missing", "slow", 30.0),
    ("jobs.scratch.sweep_orphans", "slow", 60.0),
    ("jobs.uploads.sweep", "slow", 300.0),
    ("jobs.deleting.retry", "slow", 60.0),
    ("jobs.trash.empty_due", "slow", 300.0),
    ("schedules.prune.prune_due", "slow", 60.0),
    ("jobs.worker.registry.forget_dead", "slow", 600.0),
    ("schedules.pings.forget_old", "slow", 3600.0),
    ("schedules.skips.forget_old", "slow", 3600.0),
    ("schedules.ahead.set_right", "slow", 600.0),
    ("jobs.sweeping.sweep_due", "sweeps", 300.0),
    ("jobs.copying.copy_due", "copies", 15.0),
    ("schedules.pings.collect", "pings", 5.0),
    ("schedules.pings.send_due", "pings", 5.0),
    ("schedules.watch.watch_due", "watch", 300.0),
]
# Account -> [(id, name)] of the schedules that a watched server's new databases may get a copy of.
SCHEDULE_CHOICES = "schedules.watch.choices"
