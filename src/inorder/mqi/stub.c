/* The library that programs written for IBM MQ load in place of IBM's: it hands each call to inorder.mqi.library.
 *
 * Nothing here depends on a version of Python. In a Python program the functions of that Python are found at run time. In
 * any other program the first call loads the Python that the file "python" beside this library names, a line each:
 * the path of libpython, the interpreter of the environment, and a statement that makes inorder importable.
 *
 * functions.inc has a FUNCTION(place, name, (parameters), (arguments)) for each function; building.py writes it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

typedef int32_t MQLONG, MQHCONN, MQHOBJ, MQHBAG, *PMQLONG, *PMQHCONN, *PMQHOBJ, *PMQHBAG;
typedef int64_t MQHMSG, *PMQHMSG;
typedef char *PMQCHAR;
typedef unsigned char *PMQBYTE;
typedef void *PMQVOID;

enum { FAILED = 2, CONNECTION_BROKEN = 2009, NOT_AVAILABLE = 2059, UNEXPECTED = 2195, LINE = 4096 };

#define FUNCTION(place, name, parameters, arguments) #name " "
static const char names[] =
#include "functions.inc"
    ;
#undef FUNCTION

static void *table[sizeof names / 4]; /* a callback for each function: more places than names */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_ready, is_own;

static int (*is_initialized)(void), (*is_finalizing)(void), (*ensure)(void), (*run)(const char *), (*add_pending)(int (*)(void *), void *);
static void (*release)(int), (*set_object)(void *, void *), (*decref)(void *);
static void (*before_fork)(void), (*after_fork_parent)(void), (*after_fork_child)(void);
static void *(*type_of)(void *);

static void complain(const char *what, const char *why) {
    fprintf(stderr, "inorder: no queue manager can be reached, because %s: %s\n", what, why);
}

/* A fork of a program that is not Python's, announced to Python as os.fork() does. */
static int fork_state;
static void prepare(void) {
    fork_state = ensure();
    before_fork();
}
static void parent(void) {
    after_fork_parent();
    release(fork_state);
}
static void child(void) {
    after_fork_child();
    release(fork_state);
}

static int find(void *python) {
    return (is_initialized = dlsym(python, "Py_IsInitialized")) && (ensure = dlsym(python, "PyGILState_Ensure")) &&
           ((is_finalizing = dlsym(python, "Py_IsFinalizing")) || (is_finalizing = dlsym(python, "_Py_IsFinalizing"))) &&
           (release = dlsym(python, "PyGILState_Release")) && (run = dlsym(python, "PyRun_SimpleString")) &&
           (add_pending = dlsym(python, "Py_AddPendingCall")) && (set_object = dlsym(python, "PyErr_SetObject")) &&
           (type_of = dlsym(python, "PyObject_Type")) && (decref = dlsym(python, "Py_DecRef")) &&
           (before_fork = dlsym(python, "PyOS_BeforeFork")) &&
           (after_fork_parent = dlsym(python, "PyOS_AfterFork_Parent")) &&
           (after_fork_child = dlsym(python, "PyOS_AfterFork_Child"));
}

/* Starts a Python without signal handlers, and leaves the program's locale as it is. */
static void initialize(void *python, const char *program) {
    void (*start)(int) = dlsym(python, "Py_InitializeEx");
    void (*set_program)(const wchar_t *) = dlsym(python, "Py_SetProgramName");
    void *(*save_thread)(void) = dlsym(python, "PyEval_SaveThread");
    wchar_t *(*decode)(const char *, size_t *) = dlsym(python, "Py_DecodeLocale");
    char *locale = strdup(setlocale(LC_CTYPE, NULL));
    if (set_program)
        set_program(decode(program, NULL)); /* Python keeps it */
    struct sigaction before;
    sigaction(SIGINT, NULL, &before);
    start(0);
    run("import signal"); /* whichever import is the first one takes SIGINT */
    sigaction(SIGINT, &before, NULL);
    setlocale(LC_CTYPE, locale);
    free(locale);
    save_thread();
    pthread_atfork(prepare, parent, child);
    is_own = 1;
}

static void start(void) {
    char path[LINE + 8], lines[3][LINE] = {"", "", ""}, code[128];
    void *python = RTLD_DEFAULT;
    if (!find(python) || !is_initialized()) {
        Dl_info self;
        dladdr(names, &self);
        const char *slash = strrchr(self.dli_fname, '/');
        snprintf(path, sizeof path, "%.*spython", slash ? (int)(slash - self.dli_fname + 1) : 0, self.dli_fname);
        FILE *file = fopen(path, "r");
        if (!file) {
            complain(path, "it must name a Python, as inorder mqi build writes it");
            return;
        }
        for (int i = 0; i < 3 && fgets(lines[i], LINE, file); i++)
            lines[i][strcspn(lines[i], "\n")] = 0;
        fclose(file);
        if (!lines[0][0]) {
            complain(path, "it names no libpython; install one, such as apt install libpython3-dev");
            return;
        }
        if (access(lines[1], X_OK)) {
            complain(lines[1], "it is not there, or not a program");
            return;
        }
        if (!(python = dlopen(lines[0], RTLD_NOW | RTLD_GLOBAL)) || !find(python)) {
            complain(lines[0], python ? "it is no libpython of 3.10 or later" : dlerror());
            return;
        }
        if (!is_initialized())
            initialize(python, lines[1]);
    }
    int state = ensure();
    if (is_own)
        run(lines[2]);
    snprintf(code, sizeof code, "__import__('inorder.mqi.library', fromlist=['*']).register(%llu, %llu)",
             (unsigned long long)(uintptr_t)table, (unsigned long long)(uintptr_t)names);
    is_ready = !run(code); /* prints the error */
    release(state);
}

static int enter(PMQLONG completion, PMQLONG reason) {
    *completion = FAILED;
    *reason = UNEXPECTED;
    pthread_once(&once, start);
    if (is_ready && (is_initialized() || is_finalizing())) /* the end of Python deletes objects, which call MQDISC */
        return 1;
    *reason = is_ready ? CONNECTION_BROKEN : NOT_AVAILABLE; /* broken: Python has ended */
    return 0;
}

/* What interrupted a call of a Python program, such as KeyboardInterrupt, is raised again in that program. */
static int raise_again(void *exception) {
    void *type = type_of(exception);
    set_object(type, exception);
    decref(type);
    decref(exception);
    return -1;
}

static void leave(void *exception) {
    if (exception && !is_own)
        add_pending(raise_again, exception);
}

#define FUNCTION(place, name, parameters, arguments) \
    void name parameters { \
        if (enter(pCompCode, pReason)) \
            leave(((void *(*) parameters)table[place])arguments); \
    }
#include "functions.inc"
