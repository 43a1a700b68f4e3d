#include "cli/report/report_page.h"

#include <algorithm>

#include "base/units.h"
#include "cli/report/html_text.h"
#include "cli/report/report_charts.h"

namespace lmemo::cli {
namespace {

constexpr size_t kListedRuns = 25;

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--page:#fbfaf7;--card:#fff;--ink:#1d2129;--soft:#5d6673;--line:#e3e1da;--accent:#2f6f8f;--good:#3f7d58;--missing:#c9ced6;--damaged:#b8433a;--stale:#d69a2d}
@media (prefers-color-scheme:dark){:root{--page:#15181d;--card:#1d2128;--ink:#e6e8eb;--soft:#9aa4b2;--line:#323842;--accent:#6fb3d2;--good:#6fae86;--missing:#4a525e;--damaged:#e2736a;--stale:#e0b157}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem 1.25rem 4rem;max-width:62rem;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.1rem;margin:0 0 .75rem}h3{font-size:1rem;margin:1.25rem 0 .5rem}
a{color:var(--accent)}code{font:.9em ui-monospace,monospace;background:var(--page);border:1px solid var(--line);border-radius:4px;padding:.1em .4em;overflow-wrap:anywhere}
.where{color:var(--soft);margin:0 0 1.25rem;overflow-wrap:anywhere}
.verdict{border-left:5px solid var(--good);background:var(--card);padding:.9rem 1.1rem;border-radius:6px;margin:0 0 1.25rem;font-size:1.05rem}
.verdict.attention{border-left-color:var(--damaged)}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1.1rem 1.25rem;margin:0 0 1.25rem;overflow-x:auto}
dl.totals{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:1rem;margin:0}
dl.totals div{border-left:2px solid var(--line);padding-left:.75rem}dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;width:100%;margin:0 0 1rem}caption{text-align:left;font-weight:600;padding:0 0 .35rem}
th,td{text-align:left;padding:.2rem .75rem .2rem 0;font-weight:400;vertical-align:middle;overflow-wrap:anywhere}thead th{color:var(--soft);font-size:.8rem}
.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.bars td:last-child{width:45%}
.bar{height:.8rem;background:var(--accent);border-radius:2px;min-width:2px}
svg{display:block;width:100%;height:auto;max-height:32rem}svg text{font-size:12px;fill:var(--soft)}
.grid{stroke:var(--line)}.line{fill:none;stroke:currentColor;stroke-width:2}.dot{fill:currentColor}.bin{fill:var(--accent)}
.series-0{color:var(--accent)}.series-1{color:var(--stale)}.series-1 .line{stroke-dasharray:6 4}.series-2{color:var(--good)}.series-2 .line{stroke-dasharray:2 3}.legend .swatch.series{background:currentColor}
.present{fill:var(--good);background:var(--good)}.missing{fill:var(--missing);background:var(--missing)}.damaged{fill:var(--damaged);background:var(--damaged)}.stale{fill:var(--stale);background:var(--stale)}.absent{fill:var(--line)}
rect:hover,circle:hover{stroke:var(--ink);stroke-width:1.5}
.legend{color:var(--soft);font-size:.85rem}.legend span{margin-right:1rem}.swatch{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.35rem;vertical-align:-1px}
figure{margin:0 0 1rem}figcaption{color:var(--soft);font-size:.85rem}summary{cursor:pointer;color:var(--accent)}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.nothing{color:var(--soft)}
)css";

// `id` names the number for programs: the attribute data-value holds it as --json says it.
std::string total(const std::string& id, const std::string& label, uint64_t value, const std::string& shown) {
  return "<div><dt>" + html(label) + "</dt><dd id=\"" + id + "\" data-value=\"" + std::to_string(value) +
         "\">" + html(shown) + "</dd></div>\n";
}

std::string section(const std::string& id, const std::string& heading, const std::string& content) {
  return "<section id=\"" + id + "\" aria-labelledby=\"" + id + "-heading\"><h2 id=\"" + id + "-heading\">" +
         html(heading) + "</h2>\n" + content + "</section>\n";
}

std::string nothing(const std::string& why) { return "<p class=\"nothing\">" + why + "</p>\n"; }

std::string totals(const ReportData& report) {
  std::string text = "<dl class=\"totals\">\n" +
                     total("entries", "entries", report.entries, format_count(report.entries)) +
                     total("live-bytes", "stored", report.live_bytes, format_byte_count(report.live_bytes)) +
                     total("disk-bytes", "on disk", report.disk_bytes, format_byte_count(report.disk_bytes)) +
                     total("max-bytes", "limit", report.max_bytes, format_byte_limit(report.max_bytes)) +
                     total("runs-count", "runs", report.runs.size(), format_count(report.runs.size()));
  double saved = 0;
  for (const ReportFace& face : report.faces) {
    saved += face.saved_seconds;
    text += "<div><dt>hits, " + html(face.name) + "</dt><dd id=\"hit-rate-" + html(face.name) +
            "\" data-value=\"" + format_fixed(face.hit_rate(), 6) + "\">" + percent_text(face.hit_rate()) +
            "</dd></div>\n";
  }
  if (!report.faces.empty())
    text += "<div><dt>time saved</dt><dd id=\"saved-seconds\" data-value=\"" + format_fixed(saved, 3) +
            "\">" + html(format_seconds(saved)) + "</dd></div>\n";
  return text + "</dl>\n";
}

std::string run_table(const std::vector<ReportRun>& runs) {
  std::string text =
      "<details><summary>The newest runs as a table</summary><table><thead><tr><th "
      "scope=\"col\">started</th><th scope=\"col\">what</th><th scope=\"col\">source</th>"
      "<th scope=\"col\" class=\"number\">hits</th><th scope=\"col\" class=\"number\">misses</th><th "
      "scope=\"col\" class=\"number\">spent</th>"
      "<th scope=\"col\" class=\"number\">saved</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < std::min(runs.size(), kListedRuns); ++i) {
    const ReportRun& run = runs[runs.size() - 1 - i];
    text += "<tr title=\"" + html(run.id) + "\"><td>" + html(format_time_utc(run.started_ns)) + "</td><td>" +
            html(run.face) + "</td><td>" + html(run.source) + "</td><td class=\"number\">" +
            format_count(run.hits) + "</td><td class=\"number\">" + format_count(run.misses) +
            "</td><td class=\"number\">" + html(format_seconds(run.spent_seconds)) +
            "</td><td class=\"number\">" + html(format_seconds(run.saved_seconds)) + "</td></tr>\n";
  }
  return text + "</tbody></table></details>\n";
}

// `suffix` keeps the ids of several sets apart.
std::string chunk_section(const ReportChunks& chunks, const std::string& suffix) {
  std::string text =
      "<h3>" + html(chunks.directory) + "</h3>\n<dl class=\"totals\">\n" +
      total("chunks-total" + suffix, "chunks", chunks.total, format_count(chunks.total)) +
      total("chunks-missing" + suffix, "missing", chunks.missing, format_count(chunks.missing)) +
      total("chunks-damaged" + suffix, "damaged", chunks.damaged, format_count(chunks.damaged)) +
      total("chunks-stale" + suffix, "stale", chunks.stale, format_count(chunks.stale)) +
      total("chunks-rows" + suffix, "rows", chunks.rows, format_count(chunks.rows)) +
      total("chunks-tokens" + suffix, "tokens", chunks.tokens, format_count(chunks.tokens)) +
      total("chunks-bytes" + suffix, "on disk", chunks.bytes, format_byte_count(chunks.bytes)) +
      "<div><dt>rows filled</dt><dd>" + percent_text(chunks.utilization) +
      "</dd></div>\n</dl>\n<h3>Map of the chunks</h3>\n" + chunk_map(chunks);
  if (!chunks.utilization_bins.empty())
    text += histogram("How full the rows of a chunk are", "chunks", "% filled", chunks.utilization_bins);
  if (!chunks.length_bins.empty())
    text += histogram(
        "How long documents are, in tokens; each bar spans twice the one before; from rows spread over the "
        "set",
        "documents", "tokens", chunks.length_bins);
  return text;
}

std::string sizes(const ReportData& report) {
  if (report.kinds.empty())
    return nothing(report.has_store ? "The store is empty."
                                    : "There is no store here yet; the first run makes it.");
  std::string text = share_bars("By kind", report.kinds);
  if (!report.models.empty()) text += share_bars("By model", report.models);
  if (!report.tokenizers.empty()) text += share_bars("By tokenizer", report.tokenizers);
  return text;
}

}  // namespace

std::string report_page(const ReportData& report) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">"
      "<title>lmemo report</title><link rel=\"icon\" href=\"data:,\"><style>" +
      std::string(kStyle) + "</style></head>\n<body><main>\n<h1>lmemo report</h1>\n<p class=\"where\">" +
      html(report.store) + " · " + html(report.made_at) + " · lmemo " + html(report.version) +
      "</p>\n<p class=\"verdict" + (report.needs_attention ? " attention" : "") +
      "\" role=\"status\" id=\"verdict\">" + html(report.sentence) +
      (report.command.empty() ? "" : " <code>" + html(report.command) + "</code>") + "</p>\n";
  page += section("totals", "The store", totals(report));
  page += section("sizes", "What takes the space", sizes(report));
  page += section(
      "runs", "Hits, run by run",
      report.runs.empty()
          ? nothing("No run has been recorded yet. <code>lmemo sections sync</code> records each of its own.")
          : run_lines(report.runs, report.faces) + run_table(report.runs));
  page += section("misses", "Why it missed",
                  report.miss_reasons.empty() ? nothing("No misses have been recorded.")
                                              : count_bars("Misses by reason", report.miss_reasons));
  const auto suffix_of = [](size_t i) { return i ? "-" + std::to_string(i + 1) : std::string(); };
  for (size_t i = 0; i < report.chunk_sets.size(); ++i)
    page += section("chunks" + suffix_of(i), "Chunks", chunk_section(report.chunk_sets[i], suffix_of(i)));
  for (size_t i = 0; const ReportPresence& presence : report.presence)
    page += section("presence" + suffix_of(i++), "Layers of prompts: " + presence.model,
                    "<p class=\"nothing\">" + format_count(presence.prompts) + " prompts down, " +
                        format_count(presence.layers.size()) +
                        " layers across; the fuller the colour, the more of them are stored.</p>\n" +
                        presence_map(presence));
  return page + "</main></body></html>\n";
}

}  // namespace lmemo::cli
