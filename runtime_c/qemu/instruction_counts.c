/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin for QEMU that counts what a firmware's measured runs execute, for each address: executions, taken
 * branches, loads and stores by region, misses of simulated caches. toolchain/device/trace_plugin.py builds
 * it, toolchain/cycles/memory_system.py writes its arguments, toolchain/cycles/trace.py reads its file.
 *
 * Arguments: out=FILE begin=ADDRESS end=ADDRESS [outside=ADDRESS] [operators=ADDRESS:COUNT:BYTES]
 * [region=FIRST:SIZE]... [cache=HOLDS:LINE:SECTOR:WAYS:SETS:REPLACEMENT:WRITES:REGIONS]...
 *
 * A store to `begin` starts a run, one to `end` ends it and writes its sections to the file. A store to word
 * i of `operators` closes a section of operator i, one to `outside` a section of none. Caches are empty at
 * first; they are not touched between runs, so that what a host's timing does there changes no count.
 *
 * The machine has one processor: others are not counted. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- QEMU's plugin API, as far as it is used here; no package has a header for it
 * --------------------------- Version 1 (QEMU 4.2 to 8.2) adds to a counter at any address; version 2 (from
 * QEMU 9.0, which refuses 1) to one in a "scoreboard". The emulator has the functions of one of them: the
 * others' addresses are 0. */
typedef struct {
    void *score;
    size_t offset;
} board_entry;

typedef uint32_t access_info;
typedef void translated(uint64_t plugin, void *block);
typedef void executed(unsigned processor, void *data);
typedef void accessed(unsigned processor, access_info info, uint64_t address, void *data);
enum { INLINE_ADD = 0, NO_REGISTERS = 0, LOADS_AND_STORES = 3, STORES = 2 };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, translated *call);
size_t qemu_plugin_tb_n_insns(const void *block);
void *qemu_plugin_tb_get_insn(const void *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const void *instruction);
size_t qemu_plugin_insn_size(const void *instruction);
void qemu_plugin_register_vcpu_tb_exec_cb(void *block, executed *call, int registers, void *data);
void qemu_plugin_register_vcpu_mem_cb(
    void *instruction, accessed *call, int registers, int which, void *data);
unsigned qemu_plugin_mem_size_shift(access_info info);
bool qemu_plugin_mem_is_store(access_info info);

#define MAYBE __attribute__((weak))
MAYBE void
qemu_plugin_register_vcpu_insn_exec_inline(void *instruction, int operation, void *counter, uint64_t value);
MAYBE void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(void *instruction,
                                                               int operation,
                                                               board_entry entry,
                                                               uint64_t value);
MAYBE void *qemu_plugin_scoreboard_new(size_t element_bytes);
MAYBE void *qemu_plugin_scoreboard_find(void *score, unsigned processor);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;

/* QEMU reads the version after it has loaded the plugin. */
__attribute__((constructor)) static void choose_version(void)
{
    if (qemu_plugin_scoreboard_new != NULL) {
        qemu_plugin_version = 2;
    }
}

/* --- Counts --------------------------------------------------------------------------------------------- */
#define NOWHERE UINT32_MAX

enum { MOST_REGIONS = 16, MOST_CACHES = 8, PAGE_LOG2 = 12, COUNTERS_AT_ONCE = 4096 };

/* One that translated code adds to. */
typedef struct {
    uint64_t *value;
    board_entry entry;
} counter;

/* Accesses of the instruction at one address to one region. */
typedef struct {
    uint64_t loads;
    uint64_t stores;
    uint64_t load_misses;
    uint64_t store_misses;
    uint64_t write_backs; /* lines of the region that its misses pushed out and that had been written */
} traffic;

/* An instruction, whatever blocks it is translated in. */
typedef struct {
    uint32_t address;
    uint32_t size_bytes;
    counter executions;
    uint64_t taken;
    uint64_t sequential_misses; /* of instructions: the sector follows the one before */
    uint64_t jump_misses;
    uint32_t last_word; /* of its last access, address / 4 */
    uint64_t last_execution;
    traffic regions[];
} place;

typedef struct {
    place *first; /* of its instructions in the block */
    uint32_t sector;
} fetch;

/* A translated block. An instruction may be in several. */
typedef struct {
    uint32_t start;
    uint32_t end;
    place *last;
    counter endings; /* how often its last instruction began; never set back */
    uint64_t endings_before;
    struct cache *instructions;
    size_t fetch_count;
    fetch fetches[];
} block;

typedef struct {
    uint32_t first;
    uint32_t size_bytes;
} region;

typedef struct {
    uint32_t number;  /* address / bytes of a line */
    uint32_t sectors; /* that it holds, a bit each; 0: the line is free */
    bool dirty;
    uint64_t used;
} cache_line;

enum replacement { LRU, RANDOM, ROUND_ROBIN };

typedef struct cache {
    bool instructions;
    bool data;
    bool write_back; /* and a store that misses brings the sector in; else it does not */
    enum replacement replacement;
    uint32_t line_bytes;
    uint32_t sector_bytes; /* what a miss brings in */
    uint32_t ways;
    uint32_t sets;
    uint32_t regions; /* a bit each */
    uint64_t clock;
    uint32_t random;
    uint32_t *next_way; /* of each set, for round robin */
    cache_line *lines;
} cache;

typedef struct {
    uint32_t address;
    uint32_t count;
    uint32_t bytes;
} word_table;

static struct {
    FILE *out;
    char *pending; /* the run's sections so far */
    size_t pending_bytes;
    FILE *pending_file;
    bool running;
    uint32_t begin;
    uint32_t end;
    uint32_t outside;
    word_table operators;
    region regions[MOST_REGIONS];
    uint32_t region_count;
    cache caches[MOST_CACHES];
    uint32_t cache_count;
    place **pages[1u << (32 - PAGE_LOG2)];
    place **places;
    size_t place_count;
    size_t place_room;
    void *counters;
    size_t counters_used;
    block *previous;
    uint32_t fetched_sector;
    cache *fetched_from;
} plugin = {.begin = NOWHERE, .end = NOWHERE, .outside = NOWHERE, .counters_used = COUNTERS_AT_ONCE};

static void *checked(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "instruction counts: out of memory\n");
        exit(1);
    }
    return memory;
}

static void *zeroed(size_t count, size_t bytes)
{
    return checked(calloc(count, bytes));
}

static counter new_counter(void)
{
    const bool boards = qemu_plugin_scoreboard_new != NULL;
    if (plugin.counters_used == COUNTERS_AT_ONCE) {
        plugin.counters = boards ? qemu_plugin_scoreboard_new(COUNTERS_AT_ONCE * sizeof(uint64_t))
                                 : zeroed(COUNTERS_AT_ONCE, sizeof(uint64_t));
        plugin.counters_used = 0;
    }
    uint64_t *values = boards ? qemu_plugin_scoreboard_find(plugin.counters, 0) : plugin.counters;
    const size_t index = plugin.counters_used++;
    return (counter){&values[index], {plugin.counters, index * sizeof(uint64_t)}};
}

static void add_when_executed(void *instruction, counter which)
{
    if (qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu != NULL) {
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, INLINE_ADD, which.entry, 1);
    } else {
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, INLINE_ADD, which.value, 1);
    }
}

static place *place_at(uint32_t address, uint32_t size_bytes)
{
    place ***page = &plugin.pages[address >> PAGE_LOG2];
    if (*page == NULL) {
        *page = zeroed(1u << (PAGE_LOG2 - 1), sizeof(place *));
    }
    place **found = &(*page)[(address & ((1u << PAGE_LOG2) - 1u)) / 2u];
    if (*found == NULL) {
        *found = zeroed(1, sizeof(place) + plugin.region_count * sizeof(traffic));
        (*found)->address = address;
        (*found)->last_execution = UINT64_MAX;
        (*found)->executions = new_counter();
        if (plugin.place_count == plugin.place_room) {
            plugin.place_room = 2 * plugin.place_room + 1024;
            plugin.places = checked(realloc(plugin.places, plugin.place_room * sizeof(place *)));
        }
        plugin.places[plugin.place_count++] = *found;
    }
    (*found)->size_bytes = size_bytes;
    return *found;
}

static void clear_counts(void)
{
    for (size_t i = 0; i < plugin.place_count; i++) {
        place *at = plugin.places[i];
        at->last_execution = UINT64_MAX;
        *at->executions.value = at->taken = at->sequential_misses = at->jump_misses = 0;
        memset(at->regions, 0, plugin.region_count * sizeof(traffic));
    }
}

/* --- Sections and the file --------------------------------------------------------------------------------
 */
static bool has_counts(const place *at)
{
    return *at->executions.value || at->taken || at->sequential_misses || at->jump_misses;
}

static void write_place(FILE *file, const place *at)
{
    fprintf(file, "%" PRIx32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, at->address,
            at->size_bytes, *at->executions.value, at->taken, at->sequential_misses, at->jump_misses);
    for (uint32_t i = 0; i < plugin.region_count; i++) {
        const traffic *in = &at->regions[i];
        if (in->loads || in->stores || in->write_backs) {
            fprintf(file, " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, i,
                    in->loads, in->stores, in->load_misses, in->store_misses, in->write_backs);
        }
    }
    fputc('\n', file);
}

/* `operator_index` is -1 for what lies outside the operators. */
static void close_section(int32_t operator_index)
{
    size_t count = 0;
    for (size_t i = 0; i < plugin.place_count; i++) {
        count += has_counts(plugin.places[i]);
    }
    fprintf(plugin.pending_file, "section %" PRId32 " %zu\n", operator_index, count);
    for (size_t i = 0; i < plugin.place_count; i++) {
        if (has_counts(plugin.places[i])) {
            write_place(plugin.pending_file, plugin.places[i]);
        }
    }
    clear_counts();
}

static void begin_run(void)
{
    rewind(plugin.pending_file);
    clear_counts();
    plugin.running = true;
}

static void end_run(void)
{
    close_section(-1);
    plugin.running = false;
    fflush(plugin.pending_file);
    fputs("run\n", plugin.out);
    fwrite(plugin.pending, 1, (size_t)ftell(plugin.pending_file), plugin.out);
    fputs("end\n", plugin.out);
    fflush(plugin.out);
}

static void take_note_of_store(uint32_t address)
{
    const uint32_t offset = address - plugin.operators.address;
    if (address == plugin.begin) {
        begin_run();
    } else if (!plugin.running) {
        return;
    } else if (address == plugin.end) {
        end_run();
    } else if (address == plugin.outside) {
        close_section(-1);
    } else if (plugin.operators.bytes != 0 && offset % plugin.operators.bytes == 0 &&
               offset / plugin.operators.bytes < plugin.operators.count) {
        close_section((int32_t)(offset / plugin.operators.bytes));
    }
}

/* --- Caches -----------------------------------------------------------------------------------------------
 */
static uint32_t region_of(uint32_t address)
{
    uint32_t i = 0;
    while (i < plugin.region_count && address - plugin.regions[i].first >= plugin.regions[i].size_bytes) {
        i++;
    }
    return i;
}

static cache *cache_for(uint32_t in_region, bool of_instructions)
{
    for (uint32_t i = 0; i < plugin.cache_count; i++) {
        cache *one = &plugin.caches[i];
        if ((of_instructions ? one->instructions : one->data) && (one->regions >> in_region & 1u)) {
            return one;
        }
    }
    return NULL;
}

static uint32_t way_to_replace(cache *in, uint32_t set)
{
    const cache_line *lines = &in->lines[(size_t)set * in->ways];
    uint32_t oldest = 0;
    for (uint32_t way = 0; way < in->ways; way++) {
        if (lines[way].sectors == 0) {
            return way;
        }
        oldest = lines[way].used < lines[oldest].used ? way : oldest;
    }
    switch (in->replacement) {
    case ROUND_ROBIN:
        oldest = in->next_way[set];
        in->next_way[set] = (oldest + 1u) % in->ways;
        return oldest;
    case RANDOM: /* xorshift32 (Marsaglia 2003) */
        in->random ^= in->random << 13;
        in->random ^= in->random >> 17;
        in->random ^= in->random << 5;
        return in->random % in->ways;
    default:
        return oldest;
    }
}

/* Whether a sector was there; brings it in, unless it is a store that allocates none. `number` counts sectors
 * from address 0. `pushed_out` gets the first address of a written line that has to be written back for it.
 */
static bool look_up(cache *in, uint32_t number, bool store, bool *written_back, uint32_t *pushed_out)
{
    const uint32_t sectors_of_line = in->line_bytes / in->sector_bytes;
    const uint32_t line_number = number / sectors_of_line;
    const uint32_t sector = 1u << (number % sectors_of_line);
    const bool brought_in = !store || in->write_back;
    const uint32_t set = line_number % in->sets;
    cache_line *lines = &in->lines[(size_t)set * in->ways];
    *written_back = false;
    in->clock++;
    for (uint32_t way = 0; way < in->ways; way++) {
        cache_line *line = &lines[way];
        if (line->sectors != 0 && line->number == line_number) {
            const bool held = line->sectors & sector;
            line->used = in->clock;
            line->dirty |= store && in->write_back;
            line->sectors |= brought_in ? sector : 0u;
            return held;
        }
    }
    if (brought_in) {
        cache_line *line = &lines[way_to_replace(in, set)];
        *written_back = line->sectors != 0 && line->dirty;
        *pushed_out = line->number * in->line_bytes;
        *line = (cache_line){line_number, sector, store, in->clock};
    }
    return false;
}

static void look_up_data(place *at, uint32_t in_region, uint32_t address, bool store)
{
    cache *through = cache_for(in_region, false);
    bool written_back;
    uint32_t pushed_out;
    if (through == NULL) {
        return;
    }
    if (!look_up(through, address / through->sector_bytes, store, &written_back, &pushed_out)) {
        *(store ? &at->regions[in_region].store_misses : &at->regions[in_region].load_misses) += 1;
    }
    if (written_back && region_of(pushed_out) < plugin.region_count) {
        at->regions[region_of(pushed_out)].write_backs++;
    }
}

/* Counts words of 4 bytes. Emulators differ in how they cut an access: LDRD into two or not, that of a vector
 * into its bytes. All that one execution does to one word, in one go, is one access. */
static void access_data(place *at, uint32_t address, uint32_t size_bytes, bool store)
{
    const uint32_t last = (address + size_bytes - 1u) / 4u;
    for (uint32_t word = address / 4u; word <= last; word++) {
        const uint32_t in_region = region_of(4u * word);
        const bool again = at->last_word == word && at->last_execution == *at->executions.value;
        if (in_region < plugin.region_count && !again) {
            *(store ? &at->regions[in_region].stores : &at->regions[in_region].loads) += 1;
            look_up_data(at, in_region, 4u * word, store);
        }
        at->last_word = word;
    }
    at->last_execution = *at->executions.value;
}

static void fetch_sectors(const block *of, bool jumped)
{
    for (size_t i = 0; i < of->fetch_count; i++) {
        const fetch *one = &of->fetches[i];
        if (one->sector == plugin.fetched_sector && of->instructions == plugin.fetched_from) {
            continue;
        }
        bool written_back;
        uint32_t pushed_out;
        if (!look_up(of->instructions, one->sector, false, &written_back, &pushed_out)) {
            *(i == 0 && jumped ? &one->first->jump_misses : &one->first->sequential_misses) += 1;
        }
        if (written_back && region_of(pushed_out) < plugin.region_count) {
            one->first->regions[region_of(pushed_out)].write_backs++;
        }
        plugin.fetched_sector = one->sector;
        plugin.fetched_from = of->instructions;
    }
}

/* --- What QEMU calls --------------------------------------------------------------------------------------
 */
static void on_access(unsigned processor, access_info info, uint64_t address, void *data)
{
    if (processor != 0) {
        return;
    }
    const bool store = qemu_plugin_mem_is_store(info);
    if (plugin.running) {
        access_data(data, (uint32_t)address, 1u << qemu_plugin_mem_size_shift(info), store);
    }
    if (store) {
        take_note_of_store((uint32_t)address);
    }
}

/* A block that begins elsewhere than the one before ended was jumped to, if that one came to its end: QEMU
 * leaves a block at an access to a device, does that instruction alone, and goes on in another block. */
static void on_block(unsigned processor, void *data)
{
    block *next = data;
    const block *before = plugin.previous;
    if (processor != 0) {
        return;
    }
    const bool ended = before != NULL && *before->endings.value != before->endings_before;
    const bool jumped = ended && next->start != before->end;
    if (jumped) {
        before->last->taken++;
    }
    next->endings_before = *next->endings.value;
    plugin.previous = next;
    if (plugin.running) {
        fetch_sectors(next, jumped);
    }
}

static void add_fetches(block *made, place *at, uint32_t sector_bytes)
{
    const uint32_t last = (at->address + at->size_bytes - 1u) / sector_bytes;
    for (uint32_t sector = at->address / sector_bytes; sector <= last; sector++) {
        if (made->fetch_count == 0 || made->fetches[made->fetch_count - 1].sector != sector) {
            made->fetches[made->fetch_count++] = (fetch){at, sector};
        }
    }
}

static void on_translation(uint64_t id, void *translation)
{
    (void)id;
    const size_t count = qemu_plugin_tb_n_insns(translation);
    block *made = zeroed(1, sizeof(block) + 2 * count * sizeof(fetch));
    made->start = (uint32_t)qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translation, 0));
    made->instructions = cache_for(region_of(made->start), true);
    made->endings = new_counter();
    for (size_t i = 0; i < count; i++) {
        void *instruction = qemu_plugin_tb_get_insn(translation, i);
        place *at = place_at((uint32_t)qemu_plugin_insn_vaddr(instruction),
                             (uint32_t)qemu_plugin_insn_size(instruction));
        add_when_executed(instruction, at->executions);
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS,
                                         plugin.region_count ? LOADS_AND_STORES : STORES, at);
        if (made->instructions != NULL) {
            add_fetches(made, at, made->instructions->sector_bytes);
        }
        if (i + 1 == count) {
            add_when_executed(instruction, made->endings);
            made->last = at;
            made->end = at->address + at->size_bytes;
        }
    }
    qemu_plugin_register_vcpu_tb_exec_cb(translation, on_block, NO_REGISTERS, made);
}

/* --- Arguments --------------------------------------------------------------------------------------------
 */
static bool add_region(const char *text)
{
    region *made = &plugin.regions[plugin.region_count];
    if (plugin.region_count == MOST_REGIONS ||
        sscanf(text, "%" SCNx32 ":%" SCNx32, &made->first, &made->size_bytes) != 2) {
        return false;
    }
    plugin.region_count++;
    return true;
}

/* An instruction lies in two sectors at most, and those of a line have a bit each in `cache_line`. */
static bool sectors_fit(const cache *in)
{
    return in->sector_bytes >= 4u && in->line_bytes >= in->sector_bytes &&
           in->line_bytes % in->sector_bytes == 0 && in->line_bytes / in->sector_bytes <= 32u;
}

static bool add_cache(const char *text)
{
    char holds[32], replacement[32], writes[32];
    cache *made = &plugin.caches[plugin.cache_count];
    if (plugin.cache_count == MOST_CACHES ||
        sscanf(text, "%31[a-z+]:%" SCNu32 ":%" SCNu32 ":%" SCNu32 ":%" SCNu32 ":%31[a-z]:%31[a-z]:%" SCNx32,
               holds, &made->line_bytes, &made->sector_bytes, &made->ways, &made->sets, replacement, writes,
               &made->regions) != 8 ||
        made->ways == 0 || made->sets == 0 || !sectors_fit(made)) {
        return false;
    }
    made->instructions = strstr(holds, "instructions") != NULL;
    made->data = strstr(holds, "data") != NULL;
    made->write_back = strcmp(writes, "back") == 0;
    made->replacement = strcmp(replacement, "random") == 0       ? RANDOM
                        : strcmp(replacement, "roundrobin") == 0 ? ROUND_ROBIN
                                                                 : LRU;
    made->random = 2463534242u;
    made->next_way = zeroed(made->sets, sizeof(uint32_t));
    made->lines = zeroed((size_t)made->sets * made->ways, sizeof(cache_line));
    plugin.cache_count++;
    return true;
}

static bool take_argument(const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL) {
        return false;
    }
    const char *value = equals + 1;
    const size_t length = (size_t)(equals - argument);
    char name[16] = "";
    memcpy(name, argument, length < sizeof name ? length : 0);
    if (strcmp(name, "out") == 0) {
        plugin.out = fopen(value, "w");
        return plugin.out != NULL;
    }
    if (strcmp(name, "region") == 0) {
        return add_region(value);
    }
    if (strcmp(name, "cache") == 0) {
        return add_cache(value);
    }
    word_table *table = &plugin.operators;
    if (strcmp(name, "operators") == 0) {
        return sscanf(value, "%" SCNx32 ":%" SCNu32 ":%" SCNu32, &table->address, &table->count,
                      &table->bytes) == 3;
    }
    uint32_t *mark = strcmp(name, "begin") == 0     ? &plugin.begin
                     : strcmp(name, "end") == 0     ? &plugin.end
                     : strcmp(name, "outside") == 0 ? &plugin.outside
                                                    : NULL;
    return mark != NULL && sscanf(value, "%" SCNx32, mark) == 1;
}

EXPORTED int qemu_plugin_install(uint64_t id, const void *machine, int argument_count, char **arguments)
{
    (void)machine;
    for (int i = 0; i < argument_count; i++) {
        if (!take_argument(arguments[i])) {
            fprintf(stderr, "instruction counts: cannot use the argument %s\n", arguments[i]);
            return 1;
        }
    }
    plugin.pending_file = open_memstream(&plugin.pending, &plugin.pending_bytes);
    if (plugin.out == NULL || plugin.pending_file == NULL) {
        fprintf(stderr, "instruction counts: no file to write to (out=FILE)\n");
        return 1;
    }
    fprintf(plugin.out, "thimble-trace 1 %" PRIu32 "\n", plugin.region_count);
    fflush(plugin.out);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
