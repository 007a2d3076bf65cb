#!/usr/bin/env python3
"""A pull worker: ONEJOB_SERVER=… ONEJOB_API_KEY=… worker.py KIND…  (standard library only)"""
import json, os, sys, threading, time, urllib.error, urllib.request

SERVER, KEY, LEASE = os.environ["ONEJOB_SERVER"], os.environ["ONEJOB_API_KEY"], int(os.environ.get("LEASE_MS", "30000"))

def post(path, body, timeout=90):
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
    request = urllib.request.Request(SERVER + "/v1/attempts" + path, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=timeout))

def say(claim, verb, **members):  # a repeat is answered as the first, so an unconfirmed one is sent again
    for _ in range(20):
        try:
            return post(f"/{claim['attempt']['id']}:{verb}", {"claim_token": claim["claim_token"], **members})
        except urllib.error.HTTPError as e:
            if e.headers.get("x-should-retry") != "true":
                return json.load(e)  # claim-lost, say
        except OSError:
            pass
        time.sleep(1)

def beat(claim, done):  # three times a lease, until the work is done
    while not done.wait(LEASE / 3000):
        say(claim, "heartbeat", lease_ms=LEASE)

def work(claim):  # yours: hand claim["provider_key"] on to whatever has an effect
    time.sleep(float(os.environ.get("WORK_SECONDS", "1")))
    return {"echo": claim["input"]}

def handle(claim, began):
    if time.monotonic() - began > LEASE / 1000:  # frozen since the claim: do not begin
        return say(claim, "release")
    done = threading.Event()
    threading.Thread(target=beat, args=(claim, done), daemon=True).start()
    try:
        return say(claim, "finish", outcome="succeeded", result=work(claim))
    except Exception as e:  # it may have had its effect: that is unknown, not failed
        return say(claim, "finish", outcome="unknown", error={"code": type(e).__name__, "message": str(e)[:1000]})
    finally:
        done.set()

while True:
    try:
        claims = post(":claim", {"kinds": sys.argv[1:], "max": 1, "lease_ms": LEASE, "wait_ms": 30000})["items"]
    except OSError as e:  # HTTPError is one too
        print("claim:", e, file=sys.stderr, flush=True)
        time.sleep(1)
        continue
    for claim in claims:
        answer = handle(claim, time.monotonic())
        print(claim["job_id"], (answer or {}).get("state") or answer, flush=True)
