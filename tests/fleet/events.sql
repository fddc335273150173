-- Events of each host, minute by minute.
SELECT toStartOfMinute(toDateTime(intDiv(time_unix_ms, 1000))) AS minute, `host.name` AS host, event,
       sum(value) AS events
FROM nhmtap FINAL
WHERE activity = 'counts' AND event != ''
GROUP BY minute, host, event
ORDER BY minute, host, event
