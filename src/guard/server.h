#pragma once
// The guard's socket: poll(2), one thread, every buffer bounded. Who a client is comes from the kernel (SO_PEERCRED);
// that it lives from its socket and its pidfd. A client that does not read its answers is dropped.

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "guard/engine.h"
#include "guard/protocol.h"

namespace flyball::guard {

/// Who may ask for what. Whoever can open the socket (its mode is 0660) may ask as a job.
struct PeerRules {
  std::set<uid_t> site_uids{0};
  std::set<uid_t> fleet_uids;
  /// A job may only lease boards that the site has allowed to its user (verb `allow`), and only give back its own.
  bool require_allowance = false;
};

struct ServerOptions {
  std::string path;
  gid_t group = static_cast<gid_t>(-1);  ///< of the socket; -1 = as created
  PeerRules rules;
  std::size_t most_clients = 64;
  std::size_t longest_output = 4u << 20;  ///< unread answers of one client
  Seconds slowest_client{5};              ///< to take any of them
};

class Server {
 public:
  /// The caller holds the lock that says that no other guard uses this path; a socket left there is removed.
  static Result<std::unique_ptr<Server>> listen(Engine& engine, Clock& clock, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Waits for up to `timeout` (or until a signal), serves what is there, then lets the engine tick. Time that the
  /// guard itself was busy for is not counted against leases.
  void turn(Seconds timeout);
  std::size_t clients() const { return clients_.size(); }

 private:
  struct Client {
    Descriptor socket;
    Descriptor process;  ///< pidfd; absent on kernels without
    pid_t pid = 0;
    uid_t uid = 0;
    std::string input;
    std::string output;
    MonoTime output_since;
    std::set<LeaseId> leases;
    std::string stopped;         ///< who gave back what it held, on purpose; empty = nobody. It gets no lease any more
    bool asked_in_vain = false;  ///< since then, and the audit log says so
    std::string gone;            ///< why it is to be dropped; empty = it stays
  };

  Server(Engine& engine, Clock& clock, ServerOptions options)
      : engine_(engine), clock_(clock), options_(std::move(options)) {}
  void accept_all();
  void read_from(Client& client);
  void write_to(Client& client);
  void drop_gone();
  void answer(Client& client, std::string_view line);
  Result<Response> perform(Client& client, const Request& request);
  Result<Response> acquire(Client& client, const Request& request);
  Result<Response> restore(Client& client, const Request& request);
  Authority highest(const Client& client) const;
  Result<> need(const Client& client, Authority authority) const;
  Result<> need_lease(const Client& client, LeaseId lease) const;

  Engine& engine_;
  Clock& clock_;
  ServerOptions options_;
  Descriptor listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<uid_t, std::set<DeviceId>> allowed_;
};

}  // namespace flyball::guard
