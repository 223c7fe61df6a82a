// Extras only: the page says everything without them. Sortable tables, and values under the pointer in charts.
(function () {
  'use strict';
  var scale = { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9, '%': 0.01, KiB: 1 };
  function number(cell) {
    var text = cell.textContent.replace(/\u2212/g, '-').replace(/\u00a0/g, ' ').trim();
    var found = /^(-?[\d,.]+(?:e-?\d+)?)\s*([^\s(/]*)/.exec(text);
    if (!found) return text === '–' ? -Infinity : NaN;
    return parseFloat(found[1].replace(/,/g, '')) * (scale[found[2]] || 1);
  }
  document.querySelectorAll('table.sort').forEach(function (table) {
    var body = table.tBodies[0];
    if (body.rows.length < 2) return;
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      var button = document.createElement('button');
      button.type = 'button';
      button.title = 'Sort';
      while (head.firstChild) button.appendChild(head.firstChild);
      head.appendChild(button);
      button.addEventListener('click', function () {
        var up = head.getAttribute('aria-sort') === 'descending';
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        Array.prototype.slice.call(body.rows).sort(function (a, b) {
          var x = number(a.cells[column]), y = number(b.cells[column]);
          var order = isNaN(x) || isNaN(y) ? a.cells[column].textContent.localeCompare(b.cells[column].textContent) : x === y ? 0 : x - y;
          return up ? order : -order;
        }).forEach(function (row) { body.appendChild(row); });
      });
    });
  });
  // What is folded is on paper too, but the long list of mechanisms that are as wanted.
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details:not([open]):not(.rest)').forEach(function (one) { one.open = true; one.dataset.print = ''; });
  });
  window.addEventListener('afterprint', function () {
    document.querySelectorAll('details[data-print]').forEach(function (one) { one.open = false; delete one.dataset.print; });
  });
  // A link into what is folded opens it.
  window.addEventListener('hashchange', function () {
    var target = document.getElementById(location.hash.slice(1));
    for (var node = target; node; node = node.parentElement) if (node.tagName === 'DETAILS') node.open = true;
  });
  var place = document.getElementById('download'), figures = document.getElementById('figures');
  if (place && figures) {
    var save = document.createElement('button');
    save.type = 'button';
    save.textContent = 'Download the figures (JSON, ' + Math.ceil(figures.textContent.length / 1024) + ' KiB)';
    save.addEventListener('click', function () {
      var link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([figures.textContent], { type: 'application/json' }));
      link.download = 'stillcore-figures.json';
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
    place.textContent = '';
    place.appendChild(save);
  }
  function axis(text) {
    var part = text.split(','), low = +part[2], high = +part[3], from = +part[4], to = +part[5];
    return {
      unit: part[1], from: from, to: to,
      value: function (px) {
        var share = (px - from) / (to - from);
        return part[0] === 'log' ? low * Math.pow(high / low, share) : low + share * (high - low);
      }
    };
  }
  function show(value, unit) {
    if (unit === 'ns') {
      var step = value < 1e3 ? [1, 'ns'] : value < 1e6 ? [1e3, 'µs'] : value < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
      return (value / step[0]).toPrecision(3) + ' ' + step[1];
    }
    if (unit === 'share') return value >= 1e-5 ? (value * 100).toPrecision(2) + ' %' : value.toExponential(1);
    if (unit === 's') return value.toFixed(2) + ' s';
    if (unit === 'count') return Math.round(value).toString();
    return value.toPrecision(3) + '/s';
  }
  // Steps of a path made of M, H and V: [x from, x to, y].
  function steps(path) {
    var x = 0, y = 0, found = [];
    path.replace(/([MHV])([\d.]+)(?: ([\d.]+))?/g, function (all, kind, a, b) {
      if (kind === 'M') { x = +a; y = +b; } else if (kind === 'V') { y = +a; } else { found.push([x, +a, y]); x = +a; }
      return all;
    });
    return found;
  }
  document.querySelectorAll('svg[data-x]').forEach(function (svg) {
    var x = axis(svg.dataset.x), y = axis(svg.dataset.y);
    var series = Array.prototype.map.call(svg.querySelectorAll('path.s'), function (path) {
      return { label: path.dataset.l, steps: steps(path.getAttribute('d')) };
    });
    var read = document.createElement('div');
    read.className = 'read';
    read.setAttribute('aria-hidden', 'true');
    svg.parentNode.insertBefore(read, svg.nextSibling);
    var cross = document.createElementNS(svg.namespaceURI, 'path');
    cross.setAttribute('class', 'cross');
    svg.appendChild(cross);
    function clear() { read.textContent = ''; cross.removeAttribute('d'); }
    svg.addEventListener('pointerleave', clear);
    svg.addEventListener('pointermove', function (event) {
      var box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      var px = (event.clientX - box.left) / box.width * view.width;
      if (px < x.from || px > x.to) { clear(); return; }
      cross.setAttribute('d', 'M' + px + ' ' + y.to + 'V' + y.from);
      var parts = series.map(function (one) {
        var hit = one.steps.filter(function (step) { return step[0] <= px && px <= step[1]; })[0];
        return hit ? one.label + ' ' + show(y.value(hit[2]), y.unit) : '';
      }).filter(Boolean);
      read.textContent = show(x.value(px), x.unit) + (parts.length ? ':  ' + parts.join(',  ') : '');
    });
  });
})();
