#include "cli/report/report_charts.h"

#include <algorithm>

#include "base/units.h"
#include "cli/report/html_text.h"

namespace lmemo::cli {
namespace {

struct BarRow {
  std::string name, detail, shown;
  double value;
};

std::string bars(const std::string& caption, const std::string& heading, const std::vector<BarRow>& rows) {
  double largest = 0;
  for (const BarRow& row : rows) largest = std::max(largest, row.value);
  std::string text =
      "<table class=\"bars\"><caption>" + html(caption) +
      "</caption><thead><tr><th scope=\"col\">name</th><th scope=\"col\" class=\"number\">" + html(heading) +
      "</th><th scope=\"col\"><span class=\"hidden\">as a bar</span></th></tr></thead><tbody>\n";
  for (const BarRow& row : rows) {
    const double width = largest > 0 ? row.value / largest * 100 : 0;
    text += "<tr title=\"" + html(row.detail) + "\"><th scope=\"row\">" + html(row.name) +
            "</th><td class=\"number\">" + html(row.shown) +
            "</td><td aria-hidden=\"true\"><div class=\"bar\" style=\"width:" + coordinate(width) +
            "%\"></div></td></tr>\n";
  }
  return text + "</tbody></table>\n";
}

std::string svg_begin(double width, double height, const std::string& label) {
  return "<svg viewBox=\"0 0 " + coordinate(width) + " " + coordinate(height) +
         "\" role=\"img\" aria-label=\"" + html(label) + "\">\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& css_class,
                      const std::string& title, double opacity = 1) {
  return "<rect x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" + coordinate(width) +
         "\" height=\"" + coordinate(height) + "\" class=\"" + css_class + "\"" +
         (opacity < 1 ? " opacity=\"" + coordinate(opacity) + "\"" : "") + "><title>" + html(title) +
         "</title></rect>\n";
}

std::string_view name_of(CellState state) {
  switch (state) {
    case CellState::present: return "present";
    case CellState::missing: return "missing";
    case CellState::damaged: return "damaged";
    case CellState::stale: return "stale";
  }
  return "present";
}

std::string range_text(uint64_t first, uint64_t last) {
  return first == last ? format_count(first) : format_count(first) + "–" + format_count(last);
}

}  // namespace

std::string share_bars(const std::string& caption, const std::vector<ReportShare>& shares) {
  std::vector<BarRow> rows;
  for (const ReportShare& share : shares)
    rows.push_back(
        {share.name, share.detail, format_byte_count(share.bytes), static_cast<double>(share.bytes)});
  return bars(caption, "size", rows);
}

std::string count_bars(const std::string& caption, const std::vector<ReportCount>& counts) {
  std::vector<BarRow> rows;
  for (const ReportCount& count : counts)
    rows.push_back({count.name, count.name + ": " + format_count(count.count), format_count(count.count),
                    static_cast<double>(count.count)});
  return bars(caption, "count", rows);
}

// One line for each face: how a data set hit says nothing about how sections did.
std::string run_lines(const std::vector<ReportRun>& runs, const std::vector<ReportFace>& faces) {
  constexpr double kWidth = 720, kHeight = 180, kLeft = 46, kBottom = 150, kTop = 12;
  constexpr size_t kSeriesStyles = 3;
  std::string label = "Hit rate of " + format_count(runs.size()) + (runs.size() == 1 ? " run;" : " runs;");
  for (const ReportFace& face : faces) label += " " + face.name + " overall " + percent_text(face.hit_rate());
  std::string text = svg_begin(kWidth, kHeight, label);
  for (const int share : {0, 50, 100}) {
    const double y = kBottom - (kBottom - kTop) * share / 100;
    text += "<line x1=\"" + coordinate(kLeft) + "\" x2=\"" + coordinate(kWidth) + "\" y1=\"" + coordinate(y) +
            "\" y2=\"" + coordinate(y) + "\" class=\"grid\"/><text x=\"" + coordinate(kLeft - 6) + "\" y=\"" +
            coordinate(y + 4) + "\" text-anchor=\"end\">" + std::to_string(share) + " %</text>\n";
  }
  const double step = (kWidth - kLeft - 20) / static_cast<double>(std::max<size_t>(runs.size() - 1, 1));
  std::string legend;
  for (size_t f = 0; f < faces.size(); ++f) {
    const std::string series = "series-" + std::to_string(f % kSeriesStyles);
    std::string points, dots;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].face != faces[f].name) continue;
      const double x = kLeft + 10 + step * static_cast<double>(i);
      const double y = kBottom - (kBottom - kTop) * runs[i].hit_rate();
      points += (points.empty() ? "" : " ") + coordinate(x) + "," + coordinate(y);
      dots += "<circle cx=\"" + coordinate(x) + "\" cy=\"" + coordinate(y) +
              "\" r=\"4\" class=\"dot\"><title>" +
              html(format_time_utc(runs[i].started_ns) + " · " + runs[i].face + " · " +
                   percent_text(runs[i].hit_rate()) + " hits (" + format_count(runs[i].hits) + "/" +
                   format_count(runs[i].hits + runs[i].misses) + ")") +
              "</title></circle>\n";
    }
    text += "<g class=\"" + series + "\"><polyline points=\"" + points + "\" class=\"line\"/>\n" + dots +
            "</g>\n";
    legend += "<span><i class=\"swatch series " + series + "\"></i>" + html(faces[f].name) + "</span> ";
  }
  text += "<text x=\"" + coordinate(kLeft) + "\" y=\"" + coordinate(kHeight - 8) +
          "\">oldest run</text><text x=\"" + coordinate(kWidth) + "\" y=\"" + coordinate(kHeight - 8) +
          "\" text-anchor=\"end\">newest run</text></svg>\n";
  return faces.size() > 1 ? text + "<p class=\"legend\" aria-hidden=\"true\">" + legend + "</p>\n" : text;
}

std::string chunk_map(const ReportChunks& chunks) {
  constexpr double kCell = 14, kGap = 2;
  constexpr size_t kColumns = 60;
  const size_t rows = (chunks.cells.size() + kColumns - 1) / kColumns;
  const std::string label =
      "Map of " + format_count(chunks.total) + " chunks: " + format_count(chunks.missing) + " missing, " +
      format_count(chunks.damaged) + " damaged, " + format_count(chunks.stale) + " stale";
  std::string text = svg_begin(kColumns * kCell, static_cast<double>(rows) * kCell, label);
  for (size_t i = 0; i < chunks.cells.size(); ++i) {
    const ReportCell& cell = chunks.cells[i];
    const uint64_t count = cell.last - cell.first + 1;
    const std::string title =
        "chunk " + range_text(cell.first, cell.last) + ": " +
        (count == 1
             ? std::string(name_of(cell.worst))
             : format_count(cell.present) + " of " + format_count(count) + " sound" +
                   (cell.worst == CellState::present ? "" : ", worst: " + std::string(name_of(cell.worst))));
    text += rectangle(static_cast<double>(i % kColumns) * kCell, static_cast<double>(i / kColumns) * kCell,
                      kCell - kGap, kCell - kGap, "cell " + std::string(name_of(cell.worst)), title);
  }
  text += "</svg>\n<p class=\"legend\" aria-hidden=\"true\">";
  for (const CellState state : {CellState::present, CellState::missing, CellState::damaged, CellState::stale})
    text += "<span><i class=\"swatch " + std::string(name_of(state)) + "\"></i>" +
            std::string(name_of(state)) + "</span> ";
  return text + "</p>\n";
}

std::string histogram(const std::string& caption, const std::string& counted, const std::string& unit,
                      const std::vector<ReportBin>& bins) {
  constexpr double kWidth = 720, kHeight = 150, kBottom = 122, kTop = 10;
  uint64_t largest = 1, total = 0;
  for (const ReportBin& bin : bins) {
    largest = std::max(largest, bin.count);
    total += bin.count;
  }
  std::string text = "<figure>" + svg_begin(kWidth, kHeight,
                                            caption + ": " + format_count(total) + " " + counted + " in " +
                                                format_count(bins.size()) + " bins");
  const double step = kWidth / static_cast<double>(std::max<size_t>(bins.size(), 1));
  for (size_t i = 0; i < bins.size(); ++i) {
    const double height =
        (kBottom - kTop) * static_cast<double>(bins[i].count) / static_cast<double>(largest);
    const std::string range = format_count(bins[i].from) + "–" + format_count(bins[i].to) + " " + unit;
    text += rectangle(step * static_cast<double>(i) + 1, kBottom - height, std::max(step - 2, 1.0), height,
                      "bin", range + ": " + format_count(bins[i].count) + " " + counted);
  }
  if (!bins.empty())
    text += "<text x=\"0\" y=\"142\">" + format_count(bins.front().from) +
            "</text><text x=\"720\" y=\"142\" text-anchor=\"end\">" + format_count(bins.back().to) + " " +
            html(unit) + "</text>\n";
  return text + "</svg><figcaption>" + html(caption) + "</figcaption></figure>\n";
}

std::string presence_map(const ReportPresence& presence) {
  const double columns = static_cast<double>(std::max<size_t>(presence.layers.size(), 1));
  const double cell_width = std::clamp(640 / columns, 3.0, 28.0), cell_height = 8;
  double share = 0;
  for (const auto& row : presence.rows)
    for (const double value : row.shares) share += value;
  const double cells = columns * static_cast<double>(std::max<size_t>(presence.rows.size(), 1));
  std::string text =
      svg_begin(columns * cell_width, static_cast<double>(presence.rows.size()) * cell_height,
                "Which layers of " + format_count(presence.prompts) + " prompts of " + presence.model +
                    " are stored: " + percent_text(share / cells) + " of the map");
  for (size_t r = 0; r < presence.rows.size(); ++r)
    for (size_t c = 0; c < presence.rows[r].shares.size() && c < presence.layers.size(); ++c) {
      const double value = presence.rows[r].shares[c];
      const std::string title = "prompts " + range_text(presence.rows[r].first, presence.rows[r].last) +
                                ", layer " + std::to_string(presence.layers[c]) + ": " + percent_text(value);
      text += rectangle(static_cast<double>(c) * cell_width, static_cast<double>(r) * cell_height,
                        cell_width - 1, cell_height - 1, value > 0 ? "cell present" : "cell absent", title,
                        value > 0 ? 0.25 + 0.75 * value : 1);
    }
  return text + "</svg>\n";
}

}  // namespace lmemo::cli
