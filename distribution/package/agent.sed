# Changes files of this folder for otelcol-ml-agent; see stage.sh.
/gateway/d
# The unit: the program's paths.
s|=/usr/bin/otelcol-ml |=/usr/bin/otelcol-ml-agent |
s|man:otelcol-ml(|man:otelcol-ml-agent(|
# The manual page: the program's name, and no paragraph of the gateway.
/^\.\\" Left out of/,/^\.\\"$/d
s|^\.TH OTELCOL-ML |.TH OTELCOL-ML-AGENT |
s|^otelcol\\-ml |otelcol\\-ml\\-agent |
s|^\.B otelcol\\-ml|&\\-agent|
# What Debian's packages name by the package.
s|^otelcol-ml: |otelcol-ml-agent: |
s|usr/bin/otelcol-ml\]|usr/bin/otelcol-ml-agent]|
s|usr/share/doc/otelcol-ml/|usr/share/doc/otelcol-ml-agent/|
