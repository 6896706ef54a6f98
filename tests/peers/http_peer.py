"""A web service for tests on loopback: `http_peer.py FOLDER [CERTIFICATE KEY [USER:PASSWORD]]`. Prints its port.

GET /a/b?c answers with FOLDER/_a_b; each request is a line of FOLDER/requests. /slow never answers, /huge never ends."""
import base64
import http.server
import pathlib
import ssl
import sys
import time

folder = pathlib.Path(sys.argv[1])
account = base64.b64encode(sys.argv[4].encode()).decode() if len(sys.argv) > 4 else None


class Peer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with open(folder / "requests", "a") as log:
            log.write(self.path + "\n")
        if account and self.headers.get("Authorization") != "Basic " + account:
            return self.answer(401)
        if self.path.startswith("/slow"):
            time.sleep(30)
        if self.path.startswith("/huge"):
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" " * 65536)
            except OSError:
                self.close_connection = True
                return None
        file = folder / self.path.split("?")[0].rstrip("/").replace("/", "_")
        return self.answer(200, file.read_bytes()) if file.is_file() else self.answer(404)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Peer)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
