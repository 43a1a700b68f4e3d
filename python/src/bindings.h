// What each file of the extension adds to lmemo._core.
#pragma once

#include <nanobind/nanobind.h>

namespace lmemo::python {

void init_keys(nanobind::module_& m);           // Key, LongValue
void init_hits(nanobind::module_& m);           // Hit
void init_reports(nanobind::module_& m);        // Entry, StoreStats, VerifyReport, …
void init_inspection(nanobind::module_& m);     // inspect_file()
void init_stores(nanobind::module_& m);         // StoreBase, Store, MemoryStore
void init_tokenizers(nanobind::module_& m);     // NativeTokenizer
void init_forward(nanobind::module_& m);        // ForwardCache, BackendStats, TraceWriter, …
void init_activations(nanobind::module_& m);    // ActivationKeys, NativeActivations, ClaimFile
void init_chunk_reading(nanobind::module_& m);  // NativeChunkSet, RowOrder, RowReader
void init_datasets(nanobind::module_& m);       // What lmemo/dataset.py is made of
void init_sections(nanobind::module_& m);       // sync_sections(), SectionRun, SyncStats
void init_command_line(nanobind::module_& m);   // run_command_line()

}  // namespace lmemo::python
