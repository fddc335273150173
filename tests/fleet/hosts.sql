-- Each host: when its last line was written, its runs (a restart is one more), its lines, and how many are missing
-- among them.
SELECT `host.name` AS host, toDateTime(intDiv(max(last), 1000)) AS seen, count() AS runs, sum(came) AS lines,
       sum(numbers - came) AS missing
FROM
(
    SELECT `host.name`, run_id, max(time_unix_ms) AS last, count() AS came, max(seq) + 1 AS numbers
    FROM nhmtap FINAL
    GROUP BY `host.name`, run_id
)
GROUP BY host
ORDER BY host
