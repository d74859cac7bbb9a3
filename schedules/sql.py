"""The raw statements of schedules. Times are the database's."""

CLOCK = "SELECT clock_timestamp() AS now"

# Alone, as the first statement of its transaction: what is read after it has been got is what the tick before
# has left. It goes with the transaction, whatever becomes of this process.
TRY_TICK_LOCK = "SELECT pg_try_advisory_xact_lock(%(key)s) AS got, statement_timestamp() AS now"

UNFINISHED = """
SELECT DISTINCT ON (schedule_id) schedule_id, id, status
FROM job_queue
WHERE schedule_id = ANY(%(schedules)s) AND status IN ('pending', 'active')
ORDER BY schedule_id, created_at DESC
"""

# A slot that has a job is not skipped, whatever became of that job. The backup's row is held until the
# commit, so that nobody deletes it meanwhile.
SKIP = """
INSERT INTO backup_schedule_skips (schedule_id, slot, reason, backup_id)
SELECT skip.schedule_id, skip.slot, skip.reason,
       (SELECT id FROM backup_jobs WHERE id = skip.backup_id FOR KEY SHARE)
FROM jsonb_to_recordset(%(skips)s::jsonb)
    AS skip (schedule_id uuid, slot timestamptz, reason text, backup_id uuid)
WHERE NOT EXISTS (
        SELECT FROM job_queue AS job WHERE job.schedule_id = skip.schedule_id AND job.slot = skip.slot
    )
    AND NOT EXISTS (
        SELECT FROM backup_jobs AS run WHERE run.schedule_id = skip.schedule_id AND run.slot = skip.slot
    )
ON CONFLICT (schedule_id, slot) DO NOTHING
"""

# What the tick found out about rows that it holds. No next run: it stays as it is. A row that is still broken
# is not written again at every turn.
TICKED = """
UPDATE backup_schedules AS schedule
SET next_run_at = COALESCE(seen.next_run_at, schedule.next_run_at),
    last_slot = COALESCE(seen.slot, schedule.last_slot),
    broken = seen.broken
FROM jsonb_to_recordset(%(seen)s::jsonb)
    AS seen (id uuid, next_run_at timestamptz, slot timestamptz, broken text)
WHERE schedule.id = seen.id
    AND (seen.next_run_at IS NOT NULL OR schedule.broken IS DISTINCT FROM seen.broken)
"""

FORGET_SKIPS = """
DELETE FROM backup_schedule_skips
WHERE id = ANY(ARRAY(
    SELECT id FROM backup_schedule_skips
    WHERE slot < now() - make_interval(days => %(days)s)
    ORDER BY id
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
))
"""
