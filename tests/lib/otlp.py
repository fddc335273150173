# SPDX-License-Identifier: GPL-2.0-only
"""A reader of OTLP's metrics that shares nothing with the writer but the fields of opentelemetry-proto 1.x
(metrics.proto, resource.proto, common.proto), and a receiver that gives preset answers."""
import gzip
import http.server
import queue
import re
import threading

import protos
from google.protobuf import json_format

FIELDS = """
syntax = "proto3";
message AnyValue {
  oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; }
}
message KeyValue { string key = 1; AnyValue value = 2; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message Scope { string name = 1; string version = 2; repeated KeyValue attributes = 3; }
enum Temporality { UNSPECIFIED = 0; DELTA = 1; CUMULATIVE = 2; }
message NumberPoint {
  repeated KeyValue attributes = 7; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
  oneof value { double as_double = 4; sfixed64 as_int = 6; }
  uint32 flags = 8;
}
message HistogramPoint {
  repeated KeyValue attributes = 9; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
  fixed64 count = 4; optional double sum = 5; repeated fixed64 bucket_counts = 6;
  repeated double explicit_bounds = 7; uint32 flags = 10; optional double min = 11; optional double max = 12;
}
message Gauge { repeated NumberPoint data_points = 1; }
message Sum { repeated NumberPoint data_points = 1; Temporality aggregation_temporality = 2; bool is_monotonic = 3; }
message Histogram { repeated HistogramPoint data_points = 1; Temporality aggregation_temporality = 2; }
message Metric {
  string name = 1; string description = 2; string unit = 3;
  oneof data { Gauge gauge = 5; Sum sum = 7; Histogram histogram = 9; }
}
message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; string schema_url = 3; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; string schema_url = 3; }
message ReadMetrics { repeated ResourceMetrics resource_metrics = 1; }
"""


def read(line, temporality=1):
    """Returns the MetricsData of a line, after checking what the protocol requires."""
    data = json_format.Parse(line, protos.message("ReadMetrics", FIELDS)())
    resource, = data.resource_metrics
    scope, = resource.scope_metrics
    assert scope.scope.name == "nhmtap" and scope.scope.version
    assert {"service.name", "service.instance.id", "host.name"} <= {a.key for a in resource.resource.attributes}
    names = [metric.name for metric in scope.metrics]
    assert names and len(set(names)) == len(names)
    # OpenTelemetry's metrics API, "Instrument name syntax".
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_./-]{0,254}", name) for name in names), names
    for metric in scope.metrics:
        kind = metric.WhichOneof("data")
        points = getattr(metric, kind).data_points
        assert points and all(0 < p.start_time_unix_nano <= p.time_unix_nano for p in points)
        assert len({str(p.attributes) for p in points}) == len(points)
        if kind != "gauge":
            assert getattr(metric, kind).aggregation_temporality == temporality
        if kind == "sum":
            assert metric.sum.is_monotonic
        for p in points if kind == "histogram" else []:
            assert len(p.bucket_counts) == len(p.explicit_bounds) + 1 and sum(p.bucket_counts) == p.count
    return data


def points(data, name):
    """Returns [({attribute: value}, point)] of a metric."""
    found = []
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        if metric.name == name:
            for point in getattr(metric, metric.WhichOneof("data")).data_points:
                labels = {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in point.attributes}
                found.append((labels, point))
    return found


def total(lines, name, **labels):
    return sum(point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
               for line in lines for own, point in points(read(line), name)
               if all(own.get(key) == value for key, value in labels.items()))


class Request:
    def __init__(self, handler):
        self.path, self.headers = handler.path, handler.headers
        self.body = handler.rfile.read(int(handler.headers["Content-Length"]))
        if handler.headers["Content-Encoding"] == "gzip":
            self.body = gzip.decompress(self.body)


class Receiver:
    """Answers each POST with the next of `answers` (status, headers and, if not {}, a body), and with 200 when none is
    left. Requests are in `taken`, in order. `tls`: the context of its side of TLS. Use it in a with statement."""

    def __init__(self, *answers, port=0, tls=None, largest=1 << 60):
        self.answers, self.taken, self.largest = list(answers), queue.Queue(), largest
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = Request(self)
                status, headers, *body = receiver.answers.pop(0) if receiver.answers else (200, {})
                if len(request.body) > receiver.largest:
                    status = 413
                body = body[0] if body else b"{}"
                request.status = status
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                receiver.taken.put(request)  # before the end of the answer, on which nhmtap may end
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.scheme = "https" if tls else "http"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            self.server.handle_error = lambda *_: None  # a client may go during the handshake
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def url(self, path="/v1/metrics"):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def next(self):
        return self.taken.get(timeout=60)

    def rest(self):
        requests = []
        while not self.taken.empty():
            requests.append(self.taken.get())
        return requests
