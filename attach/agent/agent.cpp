// The preloaded object: takes the place of a few functions of ggml in a program that knows nothing
// of it. Each calls the real one; what is not understood runs untraced.
//
// The real function is found through the caller: the object that contains the return address is
// searched with its dependencies, so that several copies of ggml in one process, and add-ons that
// the loader keeps to themselves, get their own. RTLD_NEXT would find another copy, or none.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/agent/splits.h"

#define TT_EXPORT extern "C" __attribute__((visibility("default")))
#define TT_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

namespace tt::attach {

namespace {

// Everything here is protected by the lock, which is never held while the program's code runs.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Ring ring;
pid_t ring_owner = 0;
Library* libraries = nullptr;
Scheduler* schedulers = nullptr;
Backend* backends = nullptr;
uint32_t library_count = 0, graph_count = 0;
uint64_t scheduler_count = 0;

// Recording is paused, and no callback of the agent is left in the program. Read without the lock.
bool resting = false;

// The scheduler that computes on this thread and is recorded by splits.
__thread Scheduler* current __attribute__((tls_model("initial-exec"))) = nullptr;

constexpr size_t kMaxModels = 64;
char* models[kMaxModels];
size_t model_count = 0, models_written = 0;

constexpr size_t kMaxSetters = 8;  // copies of the CPU backend
SetAbort abort_setters[kMaxSetters];
SetThreads thread_setters[kMaxSetters];

void lock() { pthread_mutex_lock(&mutex); }
void unlock() { pthread_mutex_unlock(&mutex); }

class Locked {
 public:
  Locked() { lock(); }
  ~Locked() { unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

// Whether a collector waits for records at all. Without one, nothing is observed.
bool is_wanted() {
  static int wanted = -1;
  if (wanted < 0) {
    const char* folder = getenv(kFolderVariable);
    wanted = folder != nullptr && *folder != '\0';
  }
  return wanted != 0;
}

void* find_function(const char* name, const void* replacement, const void* caller) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
      map != nullptr && map->l_name != nullptr && *map->l_name != '\0') {
    if (void* handle = dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY); handle != nullptr) {
      // The handle stays open: what was found is remembered, and must not be unloaded.
      void* found = dlsym(handle, name);
      if (found != nullptr && found != replacement) return found;
      dlclose(handle);
    }
  }
  // The program itself, or an object that uses the copy of ggml which the program has loaded.
  return dlsym(RTLD_NEXT, name);
}

// The functions found for the callers so far. Searching takes longer than a small graph: each
// caller is searched once.
constexpr size_t kMaxCallers = 256;
struct Found {
  const void *caller, *replacement;
  void* function;
};
Found found_functions[kMaxCallers];
size_t found_count = 0;  // entries below it do not change
// Its own: the agent computes a graph to test the ticks while it holds the other one.
pthread_mutex_t found_mutex = PTHREAD_MUTEX_INITIALIZER;

void* real_function(const char* name, const void* replacement, const void* caller) {
  const size_t count = __atomic_load_n(&found_count, __ATOMIC_ACQUIRE);
  for (size_t i = 0; i < count; ++i) {
    const Found& known = found_functions[i];
    if (known.caller == caller && known.replacement == replacement) return known.function;
  }
  void* function = find_function(name, replacement, caller);
  pthread_mutex_lock(&found_mutex);
  if (function != nullptr && found_count < kMaxCallers) {
    found_functions[found_count] = {caller, replacement, function};
    __atomic_store_n(&found_count, found_count + 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&found_mutex);
  return function;
}

template <class Function>
Function* real(const char* name, Function* replacement, const void* caller) {
  return reinterpret_cast<Function*>(
      real_function(name, reinterpret_cast<const void*>(replacement), caller));
}

// ---------------------------------------------------------------- records

void write_maps() {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  Bytes text;
  const uint32_t none = 0;
  text.add(none);
  char line[4352];
  while (fgets(line, sizeof line, maps) != nullptr) {
    const char* path = strchr(line, '/');
    if (path != nullptr && strstr(path, ".so") == nullptr) text.add(line, strlen(line));
  }
  fclose(maps);
  if (!text.failed && text.size > sizeof none) {
    const auto length = static_cast<uint32_t>(text.size - sizeof none);
    memcpy(text.data, &length, sizeof length);
    const Part part = {text.data, text.size};
    ring.write(RecordKind::Maps, &part, 1);
  }
  text.release();
}

void write_library(const Library& ggml) {
  LibraryRecord record;
  record.library = ggml.number;
  record.ticks = static_cast<uint32_t>(ggml.ticks);
  Bytes bytes;
  bytes.add(record);
  bytes.add_text(ggml.version);
  bytes.add_text(ggml.path);
  const Part part = {bytes.data, bytes.size};
  if (!bytes.failed) ring.write(RecordKind::Library, &part, 1);
  bytes.release();
}

void write_program() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  ring.write_text(RecordKind::Program, path);
}

// A forked child lets go of what belongs to its parent.
void notice_fork() {
  if (ring_owner == 0 || ring_owner == getpid()) return;
  ring.forget();
  ring_owner = 0;
  for (Scheduler* s = schedulers; s != nullptr; s = s->next) s->failed = true;
}

// Makes the ring at the first graph of the process.
bool open_ring() {
  notice_fork();
  if (ring_owner != 0) return ring.is_open();
  ring_owner = getpid();
  models_written = 0;
  if (!ring.open()) return false;
  write_program();
  for (const Library* l = libraries; l != nullptr; l = l->next)
    if (l->understood) write_library(*l);
  return true;
}

void write_models() {
  for (; models_written < model_count; ++models_written)
    ring.write_text(RecordKind::Model, models[models_written]);
}

// ---------------------------------------------------------------- what the program has

Backend* backend_of(void* handle) {
  for (Backend* b = backends; b != nullptr; b = b->next)
    if (b->handle == handle) return b;
  auto* fresh = static_cast<Backend*>(calloc(1, sizeof(Backend)));
  if (fresh == nullptr) return nullptr;
  fresh->handle = handle;
  fresh->next = backends;
  return backends = fresh;
}

Scheduler* scheduler_of(void* handle) {
  notice_fork();
  for (Scheduler* s = schedulers; s != nullptr; s = s->next)
    if (s->handle == handle) return s;
  auto* fresh = static_cast<Scheduler*>(calloc(1, sizeof(Scheduler)));
  if (fresh == nullptr) return nullptr;
  fresh->handle = handle;
  fresh->number = ++scheduler_count;
  fresh->follows = true;
  fresh->next = schedulers;
  return schedulers = fresh;
}

// The copy of ggml with this function; calibrated when it is new.
Library* library_of(void* compute, void* scheduler) {
  for (Library* l = libraries; l != nullptr; l = l->next)
    if (l->compute == compute) return l;
  auto* fresh = static_cast<Library*>(calloc(1, sizeof(Library)));
  if (fresh == nullptr) return nullptr;
  fresh->number = library_count++;
  fresh->next = libraries;
  libraries = fresh;
  char text[900];
  if (const char* missing = fresh->open(compute); missing != nullptr) {
    snprintf(text, sizeof text,
             "ggml %s (%s) is not understood: it has no %s. The program runs untraced.",
             fresh->version == nullptr ? "of unknown version" : fresh->version, fresh->path,
             missing);
    ring.write_text(RecordKind::Message, text);
    return fresh;
  }
  // The backend that computes on the CPU is the last one.
  void* cpu = nullptr;
  for (int i = fresh->ggml_backend_sched_get_n_backends(scheduler) - 1; i >= 0; --i) {
    void* backend = fresh->ggml_backend_sched_get_backend(scheduler, i);
    if (cpu == nullptr || (fresh->abort_setter(cpu) == nullptr && fresh->abort_setter(backend)))
      cpu = backend;
  }
  if (const char* field = cpu == nullptr ? "buffer" : fresh->find_fields(cpu); field != nullptr) {
    snprintf(text, sizeof text,
             "ggml %s (%s) is not understood: cannot locate ggml_tensor::%s. The program runs "
             "untraced.",
             fresh->version, fresh->path, field);
    ring.write_text(RecordKind::Message, text);
    return fresh;
  }
  fresh->find_tick_rule(cpu);
  Backend* known = backend_of(cpu);
  if (known != nullptr) known->ours = false;
  if (fresh->ticks == Ticks::Never) {
    // The test has removed the program's callback, and none takes its place.
    if (const SetAbort set = fresh->abort_setter(cpu); set != nullptr && known != nullptr)
      set(cpu, known->user, known->user_data);
    snprintf(text, sizeof text, "ggml %s does not report each op; using exact timing (slower).",
             fresh->version);
    ring.write_text(RecordKind::Message, text);
  }
  fresh->understood = true;
  write_library(*fresh);
  return fresh;
}

// Gives the program its own callbacks back: while recording is paused, its ops call nothing else.
void rest() {
  for (const Scheduler* s = schedulers; s != nullptr; s = s->next)
    if (s->busy) return;  // it began before the pause
  for (Backend* b = backends; b != nullptr; b = b->next) {
    if (!b->ours || b->set_abort == nullptr) continue;
    b->set_abort(b->handle, b->user, b->user_data);
    b->ours = false;
  }
  __atomic_store_n(&resting, true, __ATOMIC_RELAXED);
}

// All that a graph costs while recording is paused.
bool is_resting() { return __atomic_load_n(&resting, __ATOMIC_RELAXED) && ring.paused(); }

// The scheduler, busy with a step that begins; null: it is not traced.
Scheduler* start(void* handle, void* compute) {
  const Locked locked;
  if (!open_ring()) return nullptr;
  if (ring.paused()) {
    rest();
    return nullptr;
  }
  __atomic_store_n(&resting, false, __ATOMIC_RELAXED);
  Library* ggml = library_of(compute, handle);
  if (ggml == nullptr || !ggml->understood) return nullptr;
  Scheduler* s = scheduler_of(handle);
  if (s == nullptr || s->failed || s->busy) return nullptr;
  if (s->ggml == nullptr) {
    s->ggml = ggml;
    s->exact = getenv(kExactVariable) != nullptr;
    const int count = ggml->ggml_backend_sched_get_n_backends(handle);
    for (int i = 0; i < count && s->backend_count < kMaxBackends; ++i) {
      Backend* backend = backend_of(ggml->ggml_backend_sched_get_backend(handle, i));
      if (backend == nullptr) continue;
      // Calls that follow no known rule would only be counted as wrong ones.
      if (ggml->ticks != Ticks::Never) backend->set_abort = ggml->abort_setter(backend->handle);
      s->backend_names[s->backend_count] = ggml->ggml_backend_name(backend->handle);
      s->backends[s->backend_count++] = backend;
    }
    write_models();
    write_maps();
  }
  s->busy = true;
  return s;
}

// ---------------------------------------------------------------- setters

void set_abort(SetAbort real_setter, void* handle, AbortCallback callback, void* data) {
  {
    const Locked locked;
    if (Backend* backend = is_wanted() ? backend_of(handle) : nullptr; backend != nullptr) {
      backend->user = callback;
      backend->user_data = data;
      backend->ours = false;
    }
  }
  real_setter(handle, callback, data);
}

void set_threads(SetThreads real_setter, void* handle, int threads) {
  {
    const Locked locked;
    if (Backend* backend = is_wanted() ? backend_of(handle) : nullptr; backend != nullptr)
      backend->threads = threads > 0 ? static_cast<uint32_t>(threads) : 0;
  }
  real_setter(handle, threads);
}

template <size_t N>
void abort_setter_of(void* handle, AbortCallback callback, void* data) {
  set_abort(abort_setters[N], handle, callback, data);
}
template <size_t N>
void thread_setter_of(void* handle, int threads) {
  set_threads(thread_setters[N], handle, threads);
}

// A function that calls set_abort() or set_threads() with this real one; the real one itself if
// there are too many.
template <class Setter>
Setter replacement_of(Setter real_setter, Setter* known,
                      const Setter (&replacements)[kMaxSetters]) {
  const Locked locked;
  for (size_t i = 0; i < kMaxSetters; ++i) {
    if (real_setter == replacements[i]) return real_setter;
    if (known[i] == nullptr) known[i] = real_setter;
    if (known[i] == real_setter) return replacements[i];
  }
  return real_setter;
}

constexpr SetAbort kAbortReplacements[kMaxSetters] = {
    abort_setter_of<0>, abort_setter_of<1>, abort_setter_of<2>, abort_setter_of<3>,
    abort_setter_of<4>, abort_setter_of<5>, abort_setter_of<6>, abort_setter_of<7>};
constexpr SetThreads kThreadReplacements[kMaxSetters] = {
    thread_setter_of<0>, thread_setter_of<1>, thread_setter_of<2>, thread_setter_of<3>,
    thread_setter_of<4>, thread_setter_of<5>, thread_setter_of<6>, thread_setter_of<7>};

void forget_scheduler(void* handle) {
  const Locked locked;
  for (Scheduler** at = &schedulers; *at != nullptr; at = &(*at)->next) {
    Scheduler* s = *at;
    if (s->handle != handle) continue;
    *at = s->next;
    SchedulerRecord record;
    record.scheduler = s->number;
    const Part part = {&record, sizeof record};
    if (ring_owner == getpid()) ring.write(RecordKind::End, &part, 1);
    for (uint32_t i = 0; i < s->backend_count; ++i) s->backends[i]->active = nullptr;
    while (s->graphs != nullptr) {
      Graph* graph = s->graphs;
      s->graphs = graph->next;
      free_graph(graph);
    }
    release(*s);
    free(s);
    return;
  }
}

void forget_backend(void* handle) {
  const Locked locked;
  for (Backend** at = &backends; *at != nullptr; at = &(*at)->next) {
    if ((*at)->handle != handle) continue;
    Backend* gone = *at;
    *at = gone->next;
    for (Scheduler* s = schedulers; s != nullptr; s = s->next)
      for (uint32_t i = 0; i < s->backend_count; ++i)
        if (s->backends[i] == gone) {
          --s->backend_count;
          s->backends[i] = s->backends[s->backend_count];
          s->backend_names[i] = s->backend_names[s->backend_count];
          break;
        }
    free(gone);
    return;
  }
}

}  // namespace
}  // namespace tt::attach

using namespace tt::attach;

// ---------------------------------------------------------------- interposed functions

TT_EXPORT int ggml_backend_sched_graph_compute_async(void* scheduler, void* graph) {
  auto* compute = real("ggml_backend_sched_graph_compute_async",
                       ggml_backend_sched_graph_compute_async, TT_CALLER);
  if (!is_wanted() || is_resting()) return compute(scheduler, graph);
  const int64_t begin = now_ns();
  Scheduler* s = start(scheduler, reinterpret_cast<void*>(compute));
  if (s == nullptr) return compute(scheduler, graph);
  if (!begin_step(*s, graph, graph_count)) {
    s->busy = false;
    return compute(scheduler, graph);
  }
  ring.count_running(1);
  Scheduler* const outer = current;
  current = s->mode == Scheduler::Mode::BySplits ? s : nullptr;
  const int status = compute(scheduler, graph);
  current = outer;
  end_step(*s, begin, status != 0, ring, graph_count, lock, unlock);
  ring.count_running(-1);
  return status;
}

// A scheduler calls these for each split of its graph, in this order: for each input the first one,
// waits, and what copies; then the backend computes.

TT_EXPORT void* ggml_backend_sched_get_tensor_backend(void* scheduler, void* tensor) {
  auto* get = real("ggml_backend_sched_get_tensor_backend", ggml_backend_sched_get_tensor_backend,
                   TT_CALLER);
  void* backend = get(scheduler, tensor);
  if (current != nullptr && current->handle == scheduler)
    on_input(*current, static_cast<const char*>(tensor), backend);
  return backend;
}

TT_EXPORT void ggml_backend_tensor_copy(void* from, void* to) {
  auto* copy = real("ggml_backend_tensor_copy", ggml_backend_tensor_copy, TT_CALLER);
  copy(from, to);
  if (current != nullptr) on_copied(*current);
}

TT_EXPORT void ggml_backend_tensor_set_async(void* backend, void* tensor, const void* data,
                                             size_t offset, size_t size) {
  auto* set = real("ggml_backend_tensor_set_async", ggml_backend_tensor_set_async, TT_CALLER);
  set(backend, tensor, data, offset, size);
  if (current != nullptr) on_part(*current, size);
}

TT_EXPORT void ggml_backend_synchronize(void* backend) {
  auto* wait = real("ggml_backend_synchronize", ggml_backend_synchronize, TT_CALLER);
  const int64_t begin = current == nullptr ? 0 : now_ns();
  wait(backend);
  if (current != nullptr) on_waited(*current, backend, begin);
}

TT_EXPORT void ggml_backend_event_synchronize(void* event) {
  auto* wait = real("ggml_backend_event_synchronize", ggml_backend_event_synchronize, TT_CALLER);
  const int64_t begin = current == nullptr ? 0 : now_ns();
  wait(event);
  if (current != nullptr) on_waited(*current, nullptr, begin);
}

TT_EXPORT int ggml_backend_graph_compute_async(void* backend, void* graph) {
  auto* compute =
      real("ggml_backend_graph_compute_async", ggml_backend_graph_compute_async, TT_CALLER);
  return current == nullptr ? compute(backend, graph)
                            : compute_split(*current, compute, backend, graph);
}

TT_EXPORT void ggml_backend_sched_set_eval_callback(void* scheduler, EvalCallback callback,
                                                    void* data) {
  auto* set =
      real("ggml_backend_sched_set_eval_callback", ggml_backend_sched_set_eval_callback, TT_CALLER);
  if (is_wanted()) {
    const Locked locked;
    if (Scheduler* s = scheduler_of(scheduler); s != nullptr) {
      s->user = callback;
      s->user_data = data;
    }
  }
  set(scheduler, callback, data);
}

TT_EXPORT void* ggml_backend_reg_get_proc_address(void* registry, const char* name) {
  auto* get =
      real("ggml_backend_reg_get_proc_address", ggml_backend_reg_get_proc_address, TT_CALLER);
  void* found = get(registry, name);
  if (found == nullptr || name == nullptr || !is_wanted()) return found;
  if (strcmp(name, "ggml_backend_set_abort_callback") == 0)
    return reinterpret_cast<void*>(
        replacement_of(reinterpret_cast<SetAbort>(found), abort_setters, kAbortReplacements));
  if (strcmp(name, "ggml_backend_set_n_threads") == 0)
    return reinterpret_cast<void*>(
        replacement_of(reinterpret_cast<SetThreads>(found), thread_setters, kThreadReplacements));
  return found;
}

struct GgufInitParams {  // struct gguf_init_params
  bool no_alloc;
  void** context;
};

TT_EXPORT void* gguf_init_from_file(const char* path, GgufInitParams params) {
  auto* init = real("gguf_init_from_file", gguf_init_from_file, TT_CALLER);
  void* opened = init(path, params);
  if (opened != nullptr && path != nullptr && is_wanted()) {
    char* absolute = realpath(path, nullptr);
    const Locked locked;
    bool known = absolute == nullptr || model_count == kMaxModels;
    for (size_t i = 0; i < model_count && !known; ++i) known = strcmp(models[i], absolute) == 0;
    if (known) {
      free(absolute);
    } else {
      models[model_count++] = absolute;
    }
  }
  return opened;
}

TT_EXPORT void ggml_backend_sched_free(void* scheduler) {
  auto* release_scheduler = real("ggml_backend_sched_free", ggml_backend_sched_free, TT_CALLER);
  if (scheduler != nullptr) forget_scheduler(scheduler);
  release_scheduler(scheduler);
}

TT_EXPORT void ggml_backend_free(void* backend) {
  auto* release_backend = real("ggml_backend_free", ggml_backend_free, TT_CALLER);
  if (backend != nullptr) forget_backend(backend);
  release_backend(backend);
}
