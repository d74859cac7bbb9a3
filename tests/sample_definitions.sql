-- The names in braces are filled in by sample.py.
WITH ours AS (
    SELECT oid FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema'
), relations AS (
    SELECT * FROM pg_class WHERE relnamespace IN (SELECT oid FROM ours)
)
SELECT 'relation', oid::regclass::text, concat_ws(' ', relkind, relpersistence, relrowsecurity, reloptions::text,
    {relacl}, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid), relowner::regrole) FROM relations
UNION ALL SELECT 'column', attrelid::regclass || '.' || attname, concat_ws(' ', attnum, format_type(atttypid, atttypmod),
    attnotnull, attidentity, attgenerated, attcollation, attacl::text, pg_get_expr(adbin, adrelid))
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid IN (SELECT oid FROM relations WHERE relkind IN ('r', 'p', 'v', 'm', 'c')) AND attnum > 0
UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace IN (SELECT oid FROM ours)
UNION ALL SELECT 'index', oid::regclass::text, pg_get_indexdef(oid) FROM relations WHERE relkind IN ('i', 'I')
UNION ALL SELECT 'view', oid::regclass::text, pg_get_viewdef(oid) FROM relations WHERE relkind IN ('v', 'm')
UNION ALL SELECT 'sequence', seqrelid::regclass::text, concat_ws(' ', seqtypid::regtype, seqstart, seqincrement, seqmin,
    seqmax, seqcache, seqcycle) FROM pg_sequence
UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'rule', ev_class::regclass || '.' || rulename, pg_get_ruledef(oid) FROM pg_rewrite
    WHERE ev_class IN (SELECT oid FROM relations)
UNION ALL SELECT 'policy', polname, concat_ws(' ', polcmd, polroles::regrole[], pg_get_expr(polqual, polrelid)) FROM pg_policy
UNION ALL SELECT 'routine', oid::regprocedure::text, CASE WHEN prokind = 'a' THEN 'aggregate' ELSE pg_get_functiondef(oid) END
    || {proacl} FROM pg_proc WHERE pronamespace IN (SELECT oid FROM ours)
UNION ALL SELECT 'enum', enumtypid::regtype || '.' || enumlabel, '' FROM pg_enum
UNION ALL SELECT 'schema', nspname, {nspacl} FROM pg_namespace WHERE oid IN (SELECT oid FROM ours)
UNION ALL SELECT 'defaults', defaclnamespace::regnamespace::text, defaclacl::text FROM pg_default_acl
UNION ALL SELECT 'statistics', stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
UNION ALL SELECT 'publication', pubname, concat_ws(' ', pubinsert, pubupdate, (SELECT count(*) FROM pg_publication_rel))
    FROM pg_publication
UNION ALL SELECT 'extension', extname, concat_ws(' ', extversion, extnamespace::regnamespace) FROM pg_extension
UNION ALL SELECT 'large object', oid::text, {lomacl} FROM pg_largeobject_metadata
UNION ALL SELECT 'comment', pg_describe_object(classoid, objoid, objsubid), description FROM pg_description
    WHERE classoid IN ('pg_class'::regclass, 'pg_namespace'::regclass, 'pg_largeobject'::regclass) AND objoid > 16383
