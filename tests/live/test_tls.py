# SPDX-License-Identifier: GPL-2.0-only
"""Outputs over TLS: whom they trust, what they show of themselves, and that no secret gets into records."""
import json
import os
import ssl
import warnings

import otlp
import pytest
from asked import free_port
from certificates import Authority, server_side
from otlp import Receiver
from puppet import command
from sessions import Session, faults, until

WORK = command("faults=100", "exit=0")


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.signed("server")


def stat(nhmtap, folder, receiver, *options, host="127.0.0.1", env=None):
    url = receiver.url().replace("127.0.0.1", host)
    return nhmtap("stat", "-e", "page-faults", "-o", folder / "out", "-o", f"otlp={url}", *options, "--", *WORK,
                  **({"env": {**os.environ, **env}} if env else {}))


def sent(receiver):
    return sum(otlp.total([request.body], "nhmtap.events") for request in receiver.rest())


def test_a_server_that_a_named_ca_has_signed_gets_everything(nhmtap, tmp_path, ca, pair):
    with Receiver(tls=server_side(*pair)) as receiver:
        result = stat(nhmtap, tmp_path, receiver, "--tls-ca-file", ca.path)
        assert result.status == 0, result.err
        assert sent(receiver) >= 100
    assert "tls_unverified" not in (tmp_path / "out").read_text()


def untrusted(ca, folder):
    return ca.signed("server"), Authority(folder, "other").path


def expired(ca, folder):
    return ca.signed("expired", days=-1), ca.path


def of_another_host(ca, folder):
    return ca.signed("elsewhere", host="DNS:elsewhere.example"), ca.path


def without_alternative_names(ca, folder):
    return ca.signed("127.0.0.1", host=None), ca.path


def of_its_address_as_a_name(ca, folder):
    return ca.signed("127.0.0.1", host="DNS:127.0.0.1"), ca.path


def signed_by_itself(ca, folder):
    own = Authority(folder, "own")
    return (own.path, own.key), None


@pytest.mark.parametrize("made, why", [(untrusted, "no CA that is known here has signed it"), (expired, "it has expired"),
                                       (of_another_host, "it is of another host"),
                                       (without_alternative_names, "it needs that of the URL as an alternative name"),
                                       (of_its_address_as_a_name, "it needs that of the URL as an alternative name"),
                                       (signed_by_itself, "no CA that is known here has signed it")])
def test_a_certificate_that_is_not_valid_is_refused_with_the_reason(nhmtap, tmp_path, ca, made, why):
    pair, trusted = made(ca, tmp_path)
    with Receiver(tls=server_side(*pair)) as receiver:
        result = stat(nhmtap, tmp_path, receiver, *(["--tls-ca-file", trusted] if trusted else []))
        assert receiver.rest() == []
    assert result.status == 3 and "the server's certificate is refused" in result.err and why in result.err
    assert '"type":"count"' in (tmp_path / "out").read_text()


@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_a_server_without_tls_1_2_is_refused_with_the_reason(nhmtap, tmp_path, ca, pair, version):
    """RFC 8996 deprecates the earlier versions."""
    old = server_side(*pair)
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    with warnings.catch_warnings(record=True):  # of a deprecated version
        old.minimum_version = old.maximum_version = getattr(ssl.TLSVersion, version)
    with Receiver(tls=old) as receiver:
        result = stat(nhmtap, tmp_path, receiver, "--tls-ca-file", ca.path)
        assert receiver.rest() == []
    assert result.status == 3 and "Error in protocol version" in result.err
    assert '"type":"count"' in (tmp_path / "out").read_text()


def test_what_is_measured_while_a_certificate_is_not_valid_is_sent_once_it_is(nhmtap, tmp_path, puppet, ca, pair):
    old, _ = expired(ca, tmp_path)
    port = free_port()
    output = {"format": "otlp", "path": f"https://127.0.0.1:{port}/v1/metrics", "tls": {"ca_file": str(ca.path)}}
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))], outputs=[{}, output]) as session:
        with Receiver(port=port, tls=server_side(*old)) as receiver:
            for _ in range(3):
                puppet.do("faults=10")
                session.do("snapshot")
            until(lambda: "the server's certificate is refused: it has expired" in session.said())
            assert receiver.rest() == []
        with Receiver(port=port, tls=server_side(*pair)) as receiver:
            first = receiver.next()
            puppet.do("faults=10")
            session.do("snapshot")
            result = session.end()
            taken = [first.body, *(request.body for request in receiver.rest())]
    assert result.status == 0
    assert otlp.total(taken, "nhmtap.events") == sum(r["value"] for r in result.of("count")) >= 40


def test_without_verification_each_start_record_says_so(nhmtap, tmp_path, ca):
    pair, _ = expired(ca, tmp_path)
    with Receiver(tls=server_side(*pair)) as receiver:
        result = stat(nhmtap, tmp_path, receiver, "--tls-insecure-skip-verify")
        assert result.status == 0 and sent(receiver) >= 100
    assert f'"tls_unverified":["{receiver.url()}"]' in (tmp_path / "out").read_text()


def test_a_client_shows_its_certificate(nhmtap, tmp_path, ca, pair):
    cert, key = ca.signed("client")
    with Receiver(tls=server_side(*pair, client_ca=ca.path)) as receiver:
        trust = ["--tls-ca-file", ca.path]
        without = stat(nhmtap, tmp_path, receiver, *trust)
        assert without.status == 3 and receiver.rest() == [] and "the server ended the connection; it may want a certificate (--tls-cert-file)" in without.err
        result = stat(nhmtap, tmp_path, receiver, *trust, "--tls-cert-file", cert, "--tls-key-file", key)
        assert result.status == 0 and sent(receiver) >= 100, result.err


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("fault", ["expired", "of another CA"])
def test_a_clients_certificate_that_the_server_refuses_is_doubted(nhmtap, tmp_path, ca, pair, fault, newest):
    cert, key = ca.signed("old", days=-1) if fault == "expired" else Authority(tmp_path, "other").signed("client")
    side = server_side(*pair, client_ca=ca.path)
    side.maximum_version = newest
    with Receiver(tls=side) as receiver:
        result = stat(nhmtap, tmp_path, receiver, "--tls-ca-file", ca.path, "--tls-cert-file", cert, "--tls-key-file", key)
        assert receiver.rest() == []
    assert result.status == 3
    assert "the server ended the connection; it may refuse the certificate (--tls-cert-file): " in result.err


def test_a_server_without_tls_is_said_to_be_that(nhmtap, tmp_path, ca):
    with Receiver() as receiver:
        result = nhmtap("stat", "-e", "page-faults", "-o", tmp_path / "out", "-o", f"otlp={receiver.url().replace('http:', 'https:')}",
                        "--tls-ca-file", ca.path, "--", *WORK)
        assert receiver.rest() == []
    assert result.status == 3 and "may speak no TLS (http://)" in result.err and "--tls-cert-file" not in result.err


def test_a_key_of_another_certificate_is_said_to_be_that(nhmtap, tmp_path, ca, pair):
    cert, other = ca.signed("client")[0], ca.signed("another")[1]
    with Receiver(tls=server_side(*pair, client_ca=ca.path)) as receiver:
        result = stat(nhmtap, tmp_path, receiver, "--tls-ca-file", ca.path, "--tls-cert-file", cert, "--tls-key-file", other)
    assert result.status == 3 and "certificate (--tls-cert-file) and key (--tls-key-file) do not fit" in result.err


@pytest.mark.parametrize("name, value, why", [
    ("CERTIFICATE", "nowhere", "No such file"), ("CERTIFICATE", "/etc/hostname", "it holds no certificate in PEM form"),
    ("CLIENT_CERTIFICATE", "alone", "its private key is missing"), ("CLIENT_KEY", "alone", "the certificate that it belongs to is missing")])
def test_a_variable_that_can_not_be_used_is_refused_by_its_name(nhmtap, name, value, why):
    result = nhmtap("stat", "-e", "page-faults", "-o", "otlp=https://127.0.0.1:1/v1/metrics", "--", "true",
                    env={**os.environ, f"OTEL_EXPORTER_OTLP_{name}": value})
    assert result.status == 1 and f"nhmtap: variable OTEL_EXPORTER_OTLP_{name} '{value}': {why}" in result.err
    plain = nhmtap("stat", "-e", "no-such-event", "-o", "otlp=http://127.0.0.1:1/v1/metrics", "--", "true",
                   env={**os.environ, f"OTEL_EXPORTER_OTLP_{name}": value})
    assert "OTEL" not in plain.err  # without TLS it has no effect


def test_opentelemetrys_variables_hold_for_its_formats(nhmtap, tmp_path, ca, pair):
    cert, key = ca.signed("client")
    env = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(ca.path), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(cert),
           "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(key), "OTEL_EXPORTER_OTLP_HEADERS": "x-team=blue,x-key=a%2Cb%3D"}
    with Receiver(tls=server_side(*pair, client_ca=ca.path)) as receiver:
        result = stat(nhmtap, tmp_path, receiver, env=env)
        assert result.status == 0, result.err
        headers = receiver.next().headers
        assert headers["x-team"] == "blue" and headers["x-key"] == "a,b="
    with Receiver() as receiver:  # the same environment, a server without TLS
        assert stat(nhmtap, tmp_path, receiver, env=env).status == 0 and receiver.next().headers["x-team"] == "blue"


SECRET = "Bearer 6f1e0c"


def test_headers_of_a_file_reach_the_server_and_no_record(nhmtap, tmp_path):
    (tmp_path / "headers").write_text(f"# of a test\nAuthorization: {SECRET}\r\n\nX-Scope-OrgID: 7\n")
    with Receiver() as receiver:
        result = stat(nhmtap, tmp_path, receiver, "--headers-file", tmp_path / "headers", "-v")
        headers = receiver.next().headers
    assert headers["Authorization"] == SECRET and headers["X-Scope-OrgID"] == "7"
    assert SECRET not in (tmp_path / "out").read_text() + result.err


def test_files_are_read_again_on_hup(nhmtap, tmp_path, puppet, ca, pair):
    headers, trust = tmp_path / "headers", tmp_path / "trust"
    headers.write_text("X-Key: old\n")
    trust.write_text(ca.path.read_text())
    activities = [faults("counts", "stat", pid=str(puppet.pid))]
    with Receiver(tls=server_side(*pair)) as receiver:
        output = {"format": "otlp", "path": receiver.url(), "headers_file": str(headers), "tls": {"ca_file": str(trust)}}
        with Session(nhmtap, tmp_path, activities, outputs=[{}, output]) as session:
            for key in ("old", "new"):
                headers.write_text(f"X-Key: {key}\n")
                session.hup()
                puppet.do("faults=10")
                session.do("snapshot")
                assert receiver.next().headers["X-Key"] == key
            headers.write_text("no header\n")
            session.hup()
            until(lambda: "line 1 has no ':'; what it was before is used" in session.said())
            puppet.do("faults=10")
            session.do("snapshot")
            assert receiver.next().headers["X-Key"] == "new"
            headers.write_text("X-Key: new\n")
            trust.write_text(Authority(tmp_path, "other").path.read_text())
            session.hup()
            puppet.do("faults=10")
            session.do("snapshot")
            result = session.end()
            assert result.status == 3 and "the server's certificate is refused" in result.err
        assert receiver.rest() == []


def bad(folder):
    files = {"empty name": ": x\n", "no colon": "Authorization\n", "control": "X-A: a\x01b\n", "space": "X A: b\n", "carriage return": "X-A: a\rX-B: b\n",
             "no value": "X-A:\n", "of the body": "content-length: 3\n"}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "zero").write_bytes(b"X-A: a\0\nX-B: b\n")
    os.mkfifo(folder / "fifo")
    whole = (Authority(folder, "own").path).read_text()
    wrong = {"empty": "", "text": "no certificate\n", "key": (folder / "own.key").read_text(), "half": whole[:len(whole) // 2],
             "garbage": "-----BEGIN CERTIFICATE-----\nMIIgarbage\n-----END CERTIFICATE-----\n",
             "a piece missing": "".join(line for line in whole.splitlines(True)[:3] + whole.splitlines(True)[4:])}
    for name, text in wrong.items():
        (folder / f"{name}.pem").write_text(text)
    return {
        "no such file": (["--headers-file", folder / "none"], "No such file"),
        "a byte of zero": (["--headers-file", folder / "zero"], "it has a byte of zero"),
        "a FIFO": (["--headers-file", folder / "fifo"], "no regular file"),
        "a folder": (["--tls-ca-file", folder], "no regular file"),
        **{name: (["--headers-file", folder / name], "line 1 has") for name in files},
        "no key": (["--tls-cert-file", folder / "space"], "its private key is missing"),
        **{f"ca of {name}": (["--tls-ca-file", folder / f"{name}.pem"], "it holds no certificate in PEM form") for name in wrong},
        "cert of key": (["--tls-cert-file", folder / "key.pem", "--tls-key-file", folder / "own.key"],
                        "it holds no certificate in PEM form"),
        "key of half": (["--tls-cert-file", folder / "own.pem", "--tls-key-file", folder / "half.pem"], "it holds no private key in PEM form"),
        "no certificate": (["--tls-key-file", folder / "space"], "that it belongs to is missing"),
    }


@pytest.mark.parametrize("which", ["no such file", "a FIFO", "a folder", "empty name", "no colon", "control", "space",
                                   "carriage return", "no value", "of the body", "a byte of zero",
                                   "no key", "no certificate", "ca of empty", "ca of text", "ca of key", "ca of half", "ca of garbage",
                                   "ca of a piece missing", "cert of key", "key of half"])
def test_what_can_not_be_used_is_refused_at_the_start(nhmtap, tmp_path, which):
    options, why = bad(tmp_path)[which]
    result = nhmtap("stat", "-e", "page-faults", "-o", "otlp=https://127.0.0.1:1/v1/metrics", *options, "--", "true")
    assert result.status == 1 and why in result.err and "->" not in result.out, result.err


def test_tls_needs_https_and_a_url_has_no_password(nhmtap, ca):
    plain = nhmtap("stat", "-o", "otlp=http://127.0.0.1:1/v1/metrics", "--tls-ca-file", ca.path, "--", "true")
    assert plain.status == 1 and "only an output at https:// has a use for it" in plain.err
    secret = nhmtap("stat", "-o", "otlp=https://me:6f1e0c@127.0.0.1:1/v1/metrics", "--", "true")
    assert secret.status == 1 and "--headers-file" in secret.err and "6f1e0c" not in secret.err


@pytest.mark.parametrize("option", ["--headers-file", "--tls-ca-file", "--tls-cert-file", "--tls-key-file"])
@pytest.mark.parametrize("outputs", [[], ["-o", "-"], ["-o", "flat=unix:socket"]])
def test_a_file_for_a_server_is_refused_where_no_output_is_one(nhmtap, option, outputs):
    result = nhmtap("stat", "-e", "page-faults", option, "file", *outputs, "--", "true")
    assert result.status == 1 and f"option {option} 'file'" in result.err + result.out and "has a use for it" in result.err + result.out


@pytest.mark.parametrize("url, tls, why", [("http", {"ca_file": "/ca"}, "/outputs/0/tls: only an output at https:// has a use for it"),
                                           ("https", {"cert_file": "/cert"}, "its private key is missing"),
                                           ("https", {"key_file": "/key"}, "that it belongs to is missing"),
                                           ("https", {"ca_file": "/ca", "cert_file": "/cert", "key_file": "/key"}, None)])
def test_a_check_of_config_refuses_what_a_run_would_without_a_look_at_the_files(nhmtap, tmp_path, url, tls, why):
    (tmp_path / "config").write_text(json.dumps({
        "activities": [faults("counts", "stat", all_cpus=True)],
        "outputs": [{"path": f"{url}://127.0.0.1:1/v1/metrics", "format": "otlp", "tls": tls}]}))
    result = nhmtap("run", "--check", tmp_path / "config")
    assert result.status == (1 if why else 0) and (why or "") in result.err
