"""The raw statements of pings. Times are the database's."""

# The runs of the last day. Those that were queued before and have ended since, or run, are few; the queue
# knows them.
_RECENT = """
    SELECT id FROM backup_jobs
    WHERE schedule_id = ANY(%(schedules)s::uuid[]) AND created_at > now() - interval '1 day'
    UNION
    SELECT id FROM job_queue
    WHERE schedule_id = ANY(%(schedules)s::uuid[])
      AND created_at <= now() - interval '1 day'
      AND (status = 'active' OR completed_at > now() - interval '1 day')
"""
# That one has come so far is worth a call.
_REACHED = """
    CASE wanted.kind
        WHEN 'start' THEN run.started_at > now() - interval '1 day'
        WHEN 'success' THEN run.status = 'completed' AND run.completed_at > now() - interval '1 day'
        ELSE run.status IN ('failed', 'cancelled') AND run.completed_at > now() - interval '1 day'
    END
"""

# All kinds in one statement, so that they see the same moment: a verdict never comes without its start. In
# one order, so that two workers at once wait for each other instead of deadlocking.
COLLECT = f"""
WITH recent AS MATERIALIZED ({_RECENT})
INSERT INTO backup_schedule_pings (id, schedule_id, backup_id, kind, attempts)
SELECT gen_random_uuid(), schedule.id, run.id, wanted.kind, 0
FROM recent
JOIN backup_jobs AS run ON run.id = recent.id
JOIN unnest(%(schedules)s::uuid[], %(kinds)s::text[]) AS wanted (schedule_id, kind)
    ON wanted.schedule_id = run.schedule_id
JOIN backup_schedules AS schedule ON schedule.id = run.schedule_id
WHERE {_REACHED}
  AND NOT EXISTS (
      SELECT FROM backup_schedule_pings AS known
      WHERE known.backup_id = run.id AND known.kind = wanted.kind
  )
ORDER BY run.id, wanted.kind
FOR KEY SHARE OF schedule
ON CONFLICT (backup_id, kind) DO NOTHING
"""  # noqa: S608  constants

# What has been so far is not told to an address that is new.
PASS_OVER = f"""
WITH recent AS MATERIALIZED ({_RECENT})
INSERT INTO backup_schedule_pings (id, schedule_id, backup_id, kind, attempts, next_attempt_at, error)
SELECT gen_random_uuid(), run.schedule_id, run.id, wanted.kind, 0, NULL, %(reason)s
FROM recent
JOIN backup_jobs AS run ON run.id = recent.id
CROSS JOIN unnest(%(kinds)s::text[]) AS wanted (kind)
WHERE {_REACHED}
ORDER BY run.id, wanted.kind
ON CONFLICT (backup_id, kind) DO NOTHING
"""  # noqa: S608  constants

# Alone, as the first statement of its transaction: who leases next sees what was leased before.
TRY_LEASE_LOCK = "SELECT pg_try_advisory_xact_lock(%(key)s) AS got"

# A start that comes after the end would tell a monitor that the next run has begun.
DROP_LATE_STARTS = """
WITH late AS MATERIALIZED (
    SELECT ping.id
    FROM backup_schedule_pings AS ping
    WHERE ping.next_attempt_at <= now()
      AND ping.kind = 'start'
      AND EXISTS (
          SELECT FROM backup_schedule_pings AS verdict
          WHERE verdict.backup_id = ping.backup_id AND verdict.kind <> 'start' AND verdict.sent_at IS NOT NULL
      )
    FOR UPDATE SKIP LOCKED
)
UPDATE backup_schedule_pings AS ping
SET next_attempt_at = NULL, error = COALESCE(ping.error || ' ', '') || %(reason)s
FROM late
WHERE ping.id = late.id
"""

# A leased ping has an attempt and no error yet. While a start is on its way, its verdict waits.
LEASE = """
WITH owed AS MATERIALIZED (
    SELECT ping.id
    FROM backup_schedule_pings AS ping
    WHERE ping.next_attempt_at <= now()
      AND (ping.kind = 'start' OR NOT EXISTS (
          SELECT FROM backup_schedule_pings AS start
          WHERE start.backup_id = ping.backup_id AND start.kind = 'start'
            AND start.next_attempt_at > now() AND start.error IS NULL
      ))
    ORDER BY ping.kind = 'start' DESC, ping.next_attempt_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
UPDATE backup_schedule_pings AS ping
SET attempts = ping.attempts + 1,
    next_attempt_at = now() + make_interval(secs => %(lease)s),
    error = NULL
FROM owed
WHERE ping.id = owed.id
RETURNING ping.id, ping.schedule_id, ping.backup_id, ping.kind, ping.attempts
"""

# Only under the lease that it was sent under.
SENT = """
UPDATE backup_schedule_pings
SET sent_at = now(), next_attempt_at = NULL, error = NULL
WHERE id = %(id)s AND attempts = %(attempts)s AND next_attempt_at IS NOT NULL
"""

FAILED = """
UPDATE backup_schedule_pings
SET error = %(error)s,
    next_attempt_at = CASE
        WHEN now() + make_interval(secs => %(pause)s) < created_at + make_interval(secs => %(patience)s)
        THEN now() + make_interval(secs => %(pause)s)
    END
WHERE id = %(id)s AND attempts = %(attempts)s AND next_attempt_at IS NOT NULL
"""

FORGET = """
WITH old AS MATERIALIZED (
    SELECT id
    FROM backup_schedule_pings
    WHERE created_at < now() - make_interval(days => %(days)s)
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM backup_schedule_pings AS ping USING old WHERE ping.id = old.id
"""
